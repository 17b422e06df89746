import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { grantToService, isRefusedRight, listMissingGrants, readRole } from "#db/connection/grants.ts";
import { areJobsMigrated, migrateJobs } from "#db/runs/jobs.ts";
import { listCompatibleNewer, listPendingMigrations, migrate } from "#db/connection/migrate.ts";
import { assertDurable } from "#db/connection/durable.ts";
import { isConnectionLost } from "#db/connection/database-errors.ts";
import { directSource, isPooled, openPool, type Database, type DatabaseSource } from "#db/connection/pool.ts";
import {
  isOnPooler,
  isRefusedByPooler,
  listPoolerProblems,
  REFUSED_BY_POOLER,
} from "#db/connection/pooler.ts";
import { areSameDatabase } from "#db/connection/same-database.ts";
import type { Log } from "#lib/log.ts";
import { StartRefused, type Config } from "./settings/settings.ts";

export const MIGRATIONS = fileURLToPath(new URL("../db/migrations", import.meta.url));

/** A connection to a database that is up to date. */
export interface OpenDatabase {
  readonly db: Database;
  readonly source: DatabaseSource;
  /** The owner of the tables; null: it is the role of `source`. */
  readonly ownerSource: DatabaseSource | null;
  /** For how long the embedded server of a long-running process has been down, in milliseconds; 0: it is running. */
  goneForMs(): number;
  /** Settles only if an embedded server could not be restarted, with the reason. */
  readonly lost: Promise<Error>;
  close(): Promise<void>;
}

/** If the embedded server can't be started for this long, the process ends, so that the operator is alerted. */
const EMBEDDED_GIVE_UP_MS = 5 * 60_000;
const REACH_EVERY_MS = 1_000;

/** How an older schema is treated when a database is opened. */
export type OlderSchema =
  /** For a start: migrates it, unless LATCHKEY_MIGRATE is `off`. */
  | "migrate_if_set"
  | "migrate"
  /** Refuses the database and changes nothing: trying out a newer version must not upgrade a database that an older one serves. */
  | "refuse"
  /** Opens it unchanged, to find out what is missing. */
  | "keep";

interface OpenOptions {
  readonly olderSchema?: OlderSchema;
  /** For a long-running process: waits for a database that is unavailable, and supervises an embedded one. */
  readonly stays?: boolean;
}

/**
 * Opens DATABASE_URL, or the embedded PostgreSQL in the data folder, and migrates it according to `olderSchema`. Safe for several
 * processes at once. The owner's connection is closed before this returns the service's.
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
  const source: DatabaseSource =
    embedded?.connection ?? sourceOf(config.databaseUrl, config.databaseDirectUrl);
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
    if (!embedded && stays) await requireSessions({ db, source }, config.databaseWaitMs, log);
    const isAhead = stays && (await isCompatiblyNewer(db, log));
    if (olderSchema !== "keep" && !isAhead) {
      const migrates =
        olderSchema === "migrate_if_set" ? config.migrate === "auto" : olderSchema === "migrate";
      if (!migrates) await requireMigrated(db, config.migrate);
      else await migrateOpened({ db, source, ownerSource }, log);
      await requireGrants(db);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { db, source, ownerSource, close, goneForMs: () => embedded?.goneForMs() ?? 0, lost: lost.promise };
}

/**
 * Whether a newer version has migrated the database and says that this program may continue to use it, as a process that is restarted in the
 * middle of a rolling upgrade. Then there is nothing to migrate, and its grants are those of the newer version.
 */
async function isCompatiblyNewer(db: Database, log: Log): Promise<boolean> {
  try {
    const migrations = await listCompatibleNewer(db, MIGRATIONS);
    if (migrations.length === 0) return false;
    log.warn(
      { migrations },
      "the database was migrated by a newer version, which allows this one to continue: replace this process by the newer version",
    );
    return true;
  } catch (error) {
    // The error that follows names the missing right and the remedy.
    if (isRefusedRight(error)) return false;
    throw error;
  }
}

const sourceOf = (
  url: Config["databaseUrl"],
  direct: Config["databaseDirectUrl"] = null,
): DatabaseSource => ({
  connectionString: url?.reveal() ?? "",
  ...(direct !== null && { direct: direct.reveal() }),
});

/** Refuses a pooler that what needs a session would have to pass, and one that is not set up for the rest. */
async function requireSessions(
  opened: Pick<OpenDatabase, "db" | "source">,
  waitMs: number,
  log: Log,
): Promise<void> {
  await withDirect(opened, waitMs, log, async (direct) => {
    const [problem] = await listPoolerProblems(opened.db, isPooled(opened.source) ? direct : null);
    if (problem !== undefined) throw new StartRefused(problem);
  });
}

/** Past a pooler, over connections that are closed afterwards. */
async function withDirect<T>(
  { db, source }: Pick<OpenDatabase, "db" | "source">,
  waitMs: number,
  log: Log,
  work: (direct: Database) => Promise<T>,
): Promise<T> {
  if (!isPooled(source)) return await work(db);
  const direct = openPool(directSource(source), { applicationName: "latchkey direct", max: 2 });
  try {
    await reach(direct, "DATABASE_DIRECT_URL", waitMs, log);
    return await work(direct);
  } finally {
    await direct.end();
  }
}

/** What is wrong with the addresses of the database, as `doctor` shows it. */
export async function findPoolerProblems(config: Config, db: Database, log: Log): Promise<readonly string[]> {
  if (config.databaseUrl === null) return [];
  const source = sourceOf(config.databaseUrl, config.databaseDirectUrl);
  return await withDirect({ db, source }, 0, log, async (direct) =>
    listPoolerProblems(db, isPooled(source) ? direct : null),
  );
}

/** `setting`: names the connection. */
async function migrateAll(db: Database, setting: string, log: Log): Promise<void> {
  // An index is built with settings and a lock of the session, which a pooler would leave to another client.
  if (await isOnPooler(db))
    throw new StartRefused(
      `${setting} leads to a pooler in transaction mode, and migrations need a session of the server. Let it lead to the server itself; ` +
        "docs/database.md#behind-pgbouncer. Nothing was changed.",
    );
  await migrate(db, MIGRATIONS, { onWait: (message) => log.warn(message) });
  await migrateJobs(db);
}

/** Migrates a database that is open. */
export async function migrateOpened(
  { db, source, ownerSource }: Pick<OpenDatabase, "db" | "source" | "ownerSource">,
  log: Log,
): Promise<void> {
  if (ownerSource !== null) return await migrateAsOwner(ownerSource, db, log);
  const setting = isPooled(source) ? "DATABASE_DIRECT_URL" : "DATABASE_URL";
  await withDirect({ db, source }, 0, log, async (direct) => await migrateAs(direct, setting, log));
}

/** Migrates as the service's role, which then owns the objects that it creates. */
async function migrateAs(db: Database, setting: string, log: Log): Promise<void> {
  try {
    await migrateAll(db, setting, log);
  } catch (error) {
    if (!isRefusedRight(error)) throw error;
    throw new StartRefused(
      `The database is older than this program, and the role ${await readRole(db)} of DATABASE_URL may not change its schema. ` +
        "Set DATABASE_OWNER_URL to a URL with the role that owns it, here or for `latchkey migrate`.",
    );
  }
}

/** Migrates as the owner's role. */
async function migrateAsOwner(ownerSource: DatabaseSource, db: Database, log: Log): Promise<void> {
  await withOwner({ db, ownerSource }, log, async (owner) => {
    await migrateAll(owner, "DATABASE_OWNER_URL", log);
    await grantToService(owner, await readRole(db));
  });
}

/** As the owner of the tables, over a connection that is closed afterwards. */
export async function withOwner<T>(
  { db, ownerSource }: Pick<OpenDatabase, "db" | "ownerSource">,
  log: Log,
  work: (owner: Database) => Promise<T>,
): Promise<T> {
  if (ownerSource === null) return await work(db);
  const owner = openPool(ownerSource, { applicationName: "latchkey owner", max: 2 });
  try {
    await reach(owner, "DATABASE_OWNER_URL", 0, log);
    if (!(await areSameDatabase(owner, db))) {
      throw new StartRefused(
        "DATABASE_OWNER_URL and DATABASE_URL lead to different databases. Nothing was changed; give both the same host, port and database.",
      );
    }
    return await work(owner);
  } finally {
    await owner.end();
  }
}

/** Only checks; changes nothing. */
async function requireMigrated(db: Database, migrate: Config["migrate"]): Promise<void> {
  const remedy =
    migrate === "off"
      ? "LATCHKEY_MIGRATE is off: run `latchkey migrate` of this version, with DATABASE_OWNER_URL, and start again."
      : "Back it up, then run `latchkey migrate` or `latchkey serve` of this version. An older version that still uses the " +
        "database will then be refused. `latchkey migrate --plan` lists the pending migrations. Nothing was changed.";
  const { isEmpty, files } = await readPending(db, remedy);
  const [first] = files;
  if (isEmpty)
    throw new StartRefused(
      migrate === "off"
        ? `The database lacks the migration ${first} and all later ones. ${remedy}`
        : "The database has no Latchkey tables yet. Run `latchkey init` to create them. Nothing was changed.",
    );
  if (first !== undefined) {
    const count = files.length === 1 ? "one migration" : `${files.length} migrations`;
    throw new StartRefused(
      `The database is older than this program: it lacks ${count}, starting with ${first}. ${remedy}`,
    );
  }
}

/** The migrations that the database lacks, including those of the job queue. Throws StartRefused if the role may not read the list. */
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

/** The migrations that `latchkey migrate` would run, in order. Changes nothing. */
export async function readMigrationPlan(config: Config, log: Log): Promise<readonly string[]> {
  const database = await openDatabase(config, log, { olderSchema: "keep" });
  try {
    const remedy = "Set DATABASE_OWNER_URL, or run this command as the role that owns the schema.";
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
    `The role ${await readRole(db)} of DATABASE_URL lacks privileges on ${named}. ` +
      "Run `latchkey migrate` with DATABASE_OWNER_URL set to the role that owns these tables.",
  );
}

/**
 * Connects for the first time to a server that Latchkey doesn't manage, and explains the most likely cause of a failure in one
 * sentence. Waits for a server that is unavailable, as when both are started at once.
 */
async function reach(db: Database, setting: string, waitMs: number, log: Log): Promise<void> {
  const until = performance.now() + waitMs;
  for (let isTold = false; ; isTold = true) {
    try {
      await db.query("select 1");
      return;
    } catch (error) {
      const isOver = isRefusedByPooler(error) || performance.now() + REACH_EVERY_MS > until;
      if (isOver || !isConnectionLost(error)) throw unreachable(setting, error as NodeJS.ErrnoException);
      if (!isTold)
        log.warn(
          `the database of ${setting} is unavailable; waiting up to ${Math.round(waitMs / 1_000)} s for it`,
        );
      await sleep(REACH_EVERY_MS);
    }
  }
}

/**
 * A start that needs several connections and loses one, as of a server that is slow to accept them, begins again for as long as it may wait
 * for the database.
 */
export async function againWhileUnreachable<T>(
  { databaseUrl, databaseWaitMs }: Config,
  log: Log,
  start: () => Promise<T>,
): Promise<T> {
  const until = performance.now() + databaseWaitMs;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (databaseUrl === null || !isConnectionLost(error)) throw error;
      if (performance.now() + REACH_EVERY_MS > until)
        throw unreachable("DATABASE_URL", error as NodeJS.ErrnoException);
      log.warn("the database of DATABASE_URL was lost during the start; starting again");
      await sleep(REACH_EVERY_MS);
    }
  }
}

function unreachable(setting: string, error: NodeJS.ErrnoException): StartRefused {
  const { code, message } = error;
  if (isRefusedByPooler(error))
    return new StartRefused(`The database of ${setting} can't be opened (${message}): ${REFUSED_BY_POOLER}.`);
  // If all addresses of a name fail, the error has a code but no message.
  const reason = [message, code].filter((text) => text !== undefined && text !== "").join(", ");
  return new StartRefused(
    `The database of ${setting} can't be opened (${reason || "unknown reason"}). Check that the server is running and that host, port, ` +
      "user, password and database name are correct. If DATABASE_URL is unset, the embedded PostgreSQL is used.",
  );
}
