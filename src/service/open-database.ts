import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { grantToService, isRefusedRight, listMissingGrants, readRole } from "#db/connection/grants.ts";
import { areJobsMigrated, migrateJobs } from "#db/runs/jobs.ts";
import { listPendingMigrations, migrate } from "#db/connection/migrate.ts";
import { assertDurable } from "#db/connection/durable.ts";
import { isConnectionLost } from "#db/connection/database-errors.ts";
import { openPool, type Database, type DatabaseSource } from "#db/connection/pool.ts";
import { areSameDatabase } from "#db/connection/same-database.ts";
import type { Log } from "#lib/log.ts";
import { StartRefused, type Config } from "./settings/settings.ts";

const MIGRATIONS = fileURLToPath(new URL("../db/migrations", import.meta.url));

/** A database that is up to date, and the way to it. */
export interface OpenDatabase {
  readonly db: Database;
  readonly source: DatabaseSource;
  /** For how long the embedded server of a process that stays has not run, in milliseconds; 0: it runs. */
  goneForMs(): number;
  /** Ends never, but for an embedded server that could not be started again: with why. */
  readonly lost: Promise<Error>;
  close(): Promise<void>;
}

/** An embedded server that does not start for so long ends the process, so that somebody looks. */
const EMBEDDED_GIVE_UP_MS = 5 * 60_000;
const REACH_EVERY_MS = 1_000;

/** What opening a database does with an older schema. */
export type OlderSchema =
  /** Migrates it, unless LATCHKEY_MIGRATE is `off`: a start. */
  | "migrate_if_set"
  | "migrate"
  /** Refuses the database, and changes nothing: a program that is tried must not upgrade what an older one serves. */
  | "refuse"
  /** Opens it as it is: for who only asks what is missing. */
  | "keep";

interface OpenOptions {
  readonly olderSchema?: OlderSchema;
  /** For a process that runs until it is told to end, which waits for a database that is away, and looks after an embedded one. */
  readonly stays?: boolean;
}

/**
 * DATABASE_URL, or the embedded PostgreSQL of the data folder; migrated as `olderSchema` says. Safe when several processes do it at
 * once. The owner's connection is closed before this gives the service's.
 */
export async function openDatabase(
  config: Config,
  log: Log,
  { olderSchema = "migrate_if_set", stays = false }: OpenOptions = {},
): Promise<OpenDatabase> {
  const lost = Promise.withResolvers<Error>();
  const embedded = config.databaseUrl
    ? null
    : await startEmbeddedPostgres({
        dataDir: config.dataDir,
        log: (message) => log.debug(message),
        watch: stays
          ? {
              notice: (message) => log.error(message),
              onGivenUp: lost.resolve,
              giveUpAfterMs: EMBEDDED_GIVE_UP_MS,
            }
          : undefined,
      });
  const source: DatabaseSource = embedded?.connection ?? sourceOf(config.databaseUrl);
  const ownerSource =
    embedded?.ownerConnection ?? (config.databaseOwnerUrl ? sourceOf(config.databaseOwnerUrl) : null);
  const db = openPool(source, { applicationName: "latchkey", log: (message) => log.warn(message) });
  const close = async (): Promise<void> => {
    await db.end();
    await embedded?.stop();
  };
  try {
    if (!embedded) await reach(db, "DATABASE_URL", stays ? config.databaseWaitMs : 0, log);
    await assertDurable(db);
    if (olderSchema !== "keep") {
      const migrates =
        olderSchema === "migrate_if_set" ? config.migrate === "auto" : olderSchema === "migrate";
      if (!migrates) await requireMigrated(db, config.migrate);
      else if (ownerSource === null) await migrateAs(db, log);
      else await migrateAsOwner(ownerSource, db, log);
      await requireGrants(db);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { db, source, close, goneForMs: () => embedded?.goneForMs() ?? 0, lost: lost.promise };
}

const sourceOf = (url: Config["databaseUrl"]): DatabaseSource => ({
  connectionString: url?.reveal() ?? "",
});

async function migrateAll(db: Database, log: Log): Promise<void> {
  await migrate(db, MIGRATIONS, { onWait: (message) => log.warn(message) });
  await migrateJobs(db);
}

/** By the role of the service, which then owns what it makes. */
async function migrateAs(db: Database, log: Log): Promise<void> {
  try {
    await migrateAll(db, log);
  } catch (error) {
    if (!isRefusedRight(error)) throw error;
    throw new StartRefused(
      `The database is older than this program, and the role ${await readRole(db)} of DATABASE_URL may not change its schema. ` +
        "Set DATABASE_OWNER_URL to the role that owns it, here or for `latchkey migrate`.",
    );
  }
}

/** By a role of its own, over a connection that is closed when this is done. */
async function migrateAsOwner(source: DatabaseSource, db: Database, log: Log): Promise<void> {
  const owner = openPool(source, { applicationName: "latchkey owner", max: 2 });
  try {
    await reach(owner, "DATABASE_OWNER_URL", 0, log);
    if (!(await areSameDatabase(owner, db))) {
      throw new StartRefused(
        "DATABASE_OWNER_URL and DATABASE_URL lead to different databases. Nothing was changed; give both the same host, port and database.",
      );
    }
    await migrateAll(owner, log);
    await grantToService(owner, await readRole(db));
  } finally {
    await owner.end();
  }
}

/** Looks, and changes nothing. */
async function requireMigrated(db: Database, migrate: Config["migrate"]): Promise<void> {
  const remedy =
    migrate === "off"
      ? "LATCHKEY_MIGRATE is off: run `latchkey migrate` of this version, with DATABASE_OWNER_URL, and start again."
      : "Back it up, then run `latchkey migrate` of this version or start it with `latchkey serve`: an older version that still uses the " +
        "database is refused from then on. `latchkey migrate --plan` lists what would be done. Nothing was changed.";
  const { isEmpty, files } = await readPending(db, remedy);
  const [first] = files;
  if (isEmpty)
    throw new StartRefused(
      migrate === "off"
        ? `The database lacks the migration ${first}, and all later ones. ${remedy}`
        : "The database has no tables of Latchkey yet. Run `latchkey init` to make them. Nothing was changed.",
    );
  if (first !== undefined) {
    const count = files.length === 1 ? "one migration" : `${files.length} migrations`;
    throw new StartRefused(
      `The database is older than this program: it lacks ${count}, from ${first} on. ${remedy}`,
    );
  }
}

/** The migrations that the database lacks, its tables of jobs included. Throws StartRefused when its role may not look. */
async function readPending(
  db: Database,
  remedy: string,
): Promise<{ readonly files: readonly string[]; readonly isEmpty: boolean }> {
  try {
    const { files, isEmpty } = await listPendingMigrations(db, MIGRATIONS);
    const jobs = (await areJobsMigrated(db)) ? [] : ["graphile_worker (its own schema)"];
    return { files: [...files, ...jobs], isEmpty };
  } catch (error) {
    if (!isRefusedRight(error)) throw error;
    throw new StartRefused(
      `The role ${await readRole(db)} of DATABASE_URL may not read the list of migrations. ${remedy}`,
    );
  }
}

/** What `latchkey migrate` would do, in order. Changes nothing. */
export async function readMigrationPlan(config: Config, log: Log): Promise<readonly string[]> {
  const database = await openDatabase(config, log, { olderSchema: "keep" });
  try {
    const remedy = "Set DATABASE_OWNER_URL, or ask as the role that owns the schema.";
    return (await readPending(database.db, remedy)).files;
  } finally {
    await database.close();
  }
}

async function requireGrants(db: Database): Promise<void> {
  const missing = await listMissingGrants(db);
  if (missing.length === 0) return;
  const named =
    missing.slice(0, 5).join(", ") + (missing.length > 5 ? `, and ${missing.length - 5} more` : "");
  throw new StartRefused(
    `The role ${await readRole(db)} of DATABASE_URL may not use everything in the database: it lacks rights on ${named}. ` +
      "Run `latchkey migrate` with DATABASE_OWNER_URL set to the role that owns these tables.",
  );
}

/**
 * The first connection to a server of somebody else: what most often is wrong, in one sentence. One that is away, as when both are
 * started at once, is waited for.
 */
async function reach(db: Database, setting: string, waitMs: number, log: Log): Promise<void> {
  const until = performance.now() + waitMs;
  for (let isTold = false; ; isTold = true) {
    try {
      await db.query("select 1");
      return;
    } catch (error) {
      const isOver = performance.now() + REACH_EVERY_MS > until;
      if (isOver || !isConnectionLost(error)) throw refusal(setting, error as NodeJS.ErrnoException);
      if (!isTold)
        log.warn(
          `the database of ${setting} is away; it is waited for, ${Math.round(waitMs / 1_000)} s at most`,
        );
      await sleep(REACH_EVERY_MS);
    }
  }
}

function refusal(setting: string, { code, message }: NodeJS.ErrnoException): StartRefused {
  // Several addresses of one name fail together, with a code and no message.
  const reason = [message, code].filter((text) => text !== undefined && text !== "").join(", ");
  return new StartRefused(
    `The database of ${setting} can't be opened (${reason || "unknown reason"}). Is the server up, and are host, port, ` +
      "user, password and database name right? With DATABASE_URL unset, the embedded PostgreSQL is used.",
  );
}
