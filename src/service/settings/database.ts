import type { Secret } from "#lib/secret.ts";
import { oneOf, readSecret, type Checked, type Read, type Setting } from "./read-value.ts";

/** Which database, and as whom it is migrated. */
export interface DatabaseSettings {
  /** null: the embedded PostgreSQL in the data folder. */
  readonly databaseUrl: Secret | null;
  /** Of the role that owns the schema. null: the role of `databaseUrl` does, or the embedded PostgreSQL's own owner. */
  readonly databaseOwnerUrl: Secret | null;
  /** `auto`: every start and command migrates first. `off`: they refuse an older schema; `latchkey migrate` and `init` migrate. */
  readonly migrate: "auto" | "off";
}

export const DATABASE_SETTINGS: readonly Setting[] = [
  {
    name: "DATABASE_URL",
    type: "PostgreSQL URL",
    default: "the embedded PostgreSQL",
    description:
      "The PostgreSQL (15 or newer) to use instead of the embedded one, as the role of the service; docs/database.md.",
    isSecret: true,
  },
  {
    name: "DATABASE_URL_FILE",
    type: "file",
    default: "unset",
    description: "File that holds that URL.",
  },
  {
    name: "DATABASE_OWNER_URL",
    type: "PostgreSQL URL",
    default: "unset: the role of DATABASE_URL migrates",
    description:
      "The same database as the role that owns the schema: for migrations and their grants alone; docs/database.md.",
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
      "Whether a start migrates the database. With `off` it refuses an older schema, and `latchkey migrate` migrates.",
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
  const databaseOwnerUrl = url("DATABASE_OWNER_URL");
  if (databaseOwnerUrl !== null && databaseUrl === null) {
    problems.push(
      "DATABASE_OWNER_URL is set and DATABASE_URL is not. Set both, or neither for the embedded PostgreSQL.",
    );
  }
  const migrate = checked<DatabaseSettings["migrate"]>(
    "LATCHKEY_MIGRATE",
    oneOf(["auto", "off"]),
    "auto or off",
    "auto",
  );
  return { databaseUrl, databaseOwnerUrl, migrate };
}
