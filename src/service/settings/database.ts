import type { Secret } from "#lib/secret.ts";
import { oneOf, readSecret, type Checked, type Read, type Setting } from "./read-value.ts";

/** The database, and the role that migrates it. */
export interface DatabaseSettings {
  /** null: the embedded PostgreSQL in the data folder. */
  readonly databaseUrl: Secret | null;
  /** Past the pooler that `databaseUrl` leads to. null: there is none. */
  readonly databaseDirectUrl: Secret | null;
  /** The URL with the role that owns the schema. null: the role of `databaseUrl` owns it, or the embedded PostgreSQL's owner. */
  readonly databaseOwnerUrl: Secret | null;
  /** `auto`: every start and command migrates first. `off`: they refuse an older schema; only `latchkey migrate` and `init` migrate. */
  readonly migrate: "auto" | "off";
}

export const DATABASE_SETTINGS: readonly Setting[] = [
  {
    name: "DATABASE_URL",
    type: "PostgreSQL URL",
    default: "the embedded PostgreSQL",
    description:
      "PostgreSQL server (15 or newer) to use instead of the embedded one, with the service's role; docs/database.md.",
    isSecret: true,
  },
  {
    name: "DATABASE_URL_FILE",
    type: "file",
    default: "unset",
    description: "File that holds that URL.",
  },
  {
    name: "DATABASE_DIRECT_URL",
    type: "PostgreSQL URL",
    default: "unset: DATABASE_URL leads to the server itself",
    description:
      "The same database and role past a pooler. Set it if DATABASE_URL leads to PgBouncer in transaction mode; docs/database.md#behind-pgbouncer.",
    isSecret: true,
  },
  {
    name: "DATABASE_DIRECT_URL_FILE",
    type: "file",
    default: "unset",
    description: "File that holds that URL.",
  },
  {
    name: "DATABASE_OWNER_URL",
    type: "PostgreSQL URL",
    default: "unset: the role of DATABASE_URL migrates",
    description:
      "The same database with the role that owns the schema, used only for migrations and their grants; docs/database.md.",
    isSecret: true,
  },
  {
    name: "DATABASE_OWNER_URL_FILE",
    type: "file",
    default: "unset",
    description: "File that holds that URL.",
  },
  {
    name: "LATCHKEY_MIGRATE",
    type: "auto | off",
    default: "auto",
    description:
      "Whether a start migrates the database. With `off`, a start refuses an older schema, and `latchkey migrate` migrates it.",
  },
];

export function readDatabase(
  read: Read,
  cwd: string,
  checked: Checked,
  problems: string[],
): DatabaseSettings {
  const url = (name: string): Secret | null => {
    const given = readSecret(name, "the URL", { read, cwd, problems });
    if (given === null || /^postgres(ql)?:\/\//.test(given.reveal())) return given;
    problems.push(`${name} must be a postgres:// or postgresql:// URL.`);
    return null;
  };
  const databaseUrl = url("DATABASE_URL");
  const databaseDirectUrl = url("DATABASE_DIRECT_URL");
  const databaseOwnerUrl = url("DATABASE_OWNER_URL");
  for (const [name, given] of [
    ["DATABASE_DIRECT_URL", databaseDirectUrl],
    ["DATABASE_OWNER_URL", databaseOwnerUrl],
  ] as const) {
    if (given !== null && databaseUrl === null)
      problems.push(
        `${name} is set but DATABASE_URL is not. Set both, or neither for the embedded PostgreSQL.`,
      );
  }
  const migrate = checked<DatabaseSettings["migrate"]>(
    "LATCHKEY_MIGRATE",
    oneOf(["auto", "off"]),
    "auto or off",
    "auto",
  );
  return { databaseUrl, databaseDirectUrl, databaseOwnerUrl, migrate };
}
