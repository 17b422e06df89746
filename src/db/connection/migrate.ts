import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Database } from "./pool.ts";

type Migration = {
  version: number;
  file: string;
  sql: string;
  sha256: string;
  /** The index that it builds concurrently, outside a transaction; null: another kind of migration. */
  concurrentIndex: string | null;
  /** The last migration of the oldest program that may use the schema after this one; null: only programs that have this one may. */
  compatibleBackTo: number | null;
};
type Applied = { version: number; name: string; sha256: string };

/** The advisory lock of every process that migrates this database or grants rights in it. */
const lockKey = 7_203_155_419;
/** A migration may rewrite a large table, or wait for another process's migration. */
const migrationTimeoutMs = 30 * 60_000;
/**
 * How long a migration waits for a table lock: all other access to the table, even reads, queues behind it. Far below PostgreSQL's
 * deadlock_timeout of a second: of a request that waits for one of its tables and has another one, the migration must be what gives
 * way, and not the request, which looks for a deadlock a second after its own wait began.
 */
const tableLockTimeoutMs = 250;
/** The pause between two attempts, in which others can proceed. */
const backOffMs = { first: 1_000, most: 30_000 };
const migrationLockPollMs = 50;

export interface MigrateOptions {
  /** Called after each failed attempt, with the reason and the time of the next one. */
  readonly onWait?: (message: string) => void;
  /** Throws if tables stay locked for longer. */
  readonly giveUpAfterMs?: number;
  /** Stops after this many migrations: the schema of an earlier version, for its rows. */
  readonly through?: number;
}

/**
 * Brings the database to the folder's last migration, forward only; each file `NNNN_name.sql` in its own transaction. Any number
 * of processes may do so at once. Returns the files that it applied itself. If a table is locked for a long time (by a backup),
 * retries. Throws, without changing anything, if an applied file was changed or is unknown to this program.
 */
export async function migrate(
  db: Database,
  folder: string,
  { onWait = () => {}, giveUpAfterMs = migrationTimeoutMs, through }: MigrateOptions = {},
): Promise<{ applied: string[] }> {
  const migrations = (await readMigrations(folder)).slice(0, through);
  const applied: string[] = [];
  const began = performance.now();
  let waitMs = backOffMs.first;
  for (;;) {
    try {
      const next = await applyNext(db, migrations);
      if (next === null) return { applied };
      if (next.isOurs) applied.push(next.file);
      waitMs = backOffMs.first;
    } catch (error) {
      if (!(error instanceof TableInUse)) throw error;
      const user = await describeOldestTransaction(db);
      if (performance.now() - began + waitMs > giveUpAfterMs)
        throw new Error(
          `Migration ${error.file} was not applied: its tables were in use for ${Math.round(giveUpAfterMs / 1000)} s${user}. ` +
            "Start again when that has ended.",
          { cause: error },
        );
      onWait(
        `migration ${error.file} waits for tables that are in use${user}; retrying in ${waitMs / 1000} s`,
      );
      await sleep(waitMs);
      waitMs = Math.min(waitMs * 2, backOffMs.most);
    }
  }
}

/** Another session has locked a table that a migration changes. */
class TableInUse extends Error {
  override readonly name = "TableInUse";
  readonly file: string;

  constructor(file: string, cause: unknown) {
    super(`${file}: a table is in use`, { cause });
    this.file = file;
  }
}

/** Most likely the blocking session; its statement is not shown. */
async function describeOldestTransaction(db: Database): Promise<string> {
  const [oldest] = await db.query<{ pid: number; name: string; since: string }>(
    `select pid, application_name as name, to_char(xact_start at time zone 'UTC', 'HH24:MI:SS') as since from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and xact_start < clock_timestamp() - make_interval(secs => $1)
     order by xact_start limit 1`,
    [tableLockTimeoutMs / 1_000],
  );
  if (oldest === undefined) return "";
  return ` (the oldest transaction is that of ${oldest.name || "a client without a name"}, process ${oldest.pid}, since ${oldest.since} UTC)`;
}

/** The migrations that a database lacks. */
export interface PendingMigrations {
  /** In the order in which they would be applied; empty: it is up to date. */
  readonly files: readonly string[];
  /** Nothing was ever migrated in it. */
  readonly isEmpty: boolean;
}

/** The migrations that the database lacks. Reads only. Throws, as `migrate` does, when folder and database don't belong together. */
export async function listPendingMigrations(db: Database, folder: string): Promise<PendingMigrations> {
  const migrations = await readMigrations(folder);
  const isThere = (await db.query(FIND_TABLE))[0]?.["exists"] === true;
  const applied = isThere ? await db.query<Applied>(LIST_APPLIED) : [];
  const isBehind = nextOf(migrations, applied) !== null;
  return {
    files: isBehind ? migrations.slice(applied.length).map(({ file }) => file) : [],
    isEmpty: applied.length === 0,
  };
}

/**
 * The applied migrations of a newer version that this program does not know, where all of them say that it may use their schema: in a rolling
 * upgrade an old process that is restarted serves until it is replaced. Empty: there are none, or it may not. Reads only.
 */
export async function listCompatibleNewer(db: Database, folder: string): Promise<readonly string[]> {
  const migrations = await readMigrations(folder);
  const isThere = (await db.query(FIND_TABLE))[0]?.["exists"] === true;
  const applied = isThere ? await db.query<Applied>(LIST_APPLIED) : [];
  const last = migrations.at(-1)?.version;
  if (last === undefined || applied.length <= migrations.length) return [];
  // Throws unless all of its own are applied as they are here.
  nextOf(migrations, applied.slice(0, migrations.length));
  const newer = await db.query<{ name: string; isCompatible: boolean }>(
    `select name, coalesce(compatible_back_to <= $1, false) as "isCompatible" from public.schema_migration
     where version > $1 order by version`,
    [last],
  );
  return newer.every(({ isCompatible }) => isCompatible) ? newer.map(({ name }) => name) : [];
}

const FIND_TABLE = "select to_regclass('public.schema_migration') is not null as exists";
const LIST_APPLIED = "select version, name, sha256 from public.schema_migration order by version";

/** The resulting schema, generated next to the migrations for reading and comparing. It is never executed. */
const SCHEMA_FILE = "schema.sql";

/** The migrations of a folder in their order. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter(
    (name) => name.endsWith(".sql") && !name.startsWith(".") && name !== SCHEMA_FILE,
  );
  const migrations: Migration[] = [];
  for (const file of names.toSorted()) {
    const number = /^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)?.[1];
    if (number === undefined)
      throw new Error(
        `${join(folder, file)}: a migration is named NNNN_name.sql (small letters, digits, _). Rename it.`,
      );
    const version = Number(number);
    const twin = migrations.find((other) => other.version === version);
    if (twin !== undefined)
      throw new Error(
        `${folder}: ${twin.file} and ${file} have the same number. Give the newer one the next free number.`,
      );
    // The same file checked out with CRLF is the same migration.
    const sql = (await readFile(join(folder, file), "utf8")).replaceAll("\r\n", "\n");
    const concurrentIndex = indexBuiltConcurrently(join(folder, file), sql);
    if (/^\s*(begin|start\s+transaction|commit|rollback)(\s+(work|transaction))?\s*;/im.test(sql)) {
      throw new Error(
        `${join(folder, file)}: begins or ends a transaction. Each migration runs in one already: remove these statements.`,
      );
    }
    const sha256 = createHash("sha256").update(sql).digest("hex");
    const compatibleBackTo = readCompatibility(join(folder, file), sql, version);
    migrations.push({ version, file, sql, sha256, concurrentIndex, compatibleBackTo });
  }
  return migrations;
}

/** Its first line may be `-- compatible back to NNNN`: the last migration of the oldest program that may still use the schema. */
function readCompatibility(path: string, sql: string, version: number): number | null {
  const [line = ""] = sql.split("\n", 1);
  if (!/^--\s*compatible\b/i.test(line)) return null;
  const number = Number(/^-- compatible back to (\d{4})$/.exec(line)?.[1]);
  if (number > 0 && number < version) return number;
  throw new Error(
    `${path}:1: must be \`-- compatible back to NNNN\` with the number of an earlier migration, or another comment.`,
  );
}

/** An index of a large table is built concurrently with writes, which is impossible in a transaction, so it has a separate file. */
function indexBuiltConcurrently(path: string, sql: string): string | null {
  const statement = sql.replaceAll(/^\s*--.*$/gm, "").trim();
  if (!/\bconcurrently\b/i.test(statement)) return null;
  const name = /^create (?:unique )?index concurrently ([a-z0-9_]+)\s[^;]*;?$/i.exec(statement)?.[1];
  if (name === undefined)
    throw new Error(
      `${path}: a migration with CONCURRENTLY is one statement, \`create index concurrently NAME …\`. Put everything else into another file.`,
    );
  return name;
}

/**
 * One transaction in which no other process migrates; the pool's time-outs don't count in it. The lock ends with it, so this works
 * through a transaction pooler too. A process that does not get the lock begins a new transaction: an index that is built concurrently waits
 * for every one that was open when it began.
 */
export async function withMigrationLock<T>(db: Database, work: (tx: Database) => Promise<T>): Promise<T> {
  return await untilLocked(
    async () =>
      await db.transaction(async (tx) => {
        const [lock] = await tx.query<{ locked: boolean }>("select pg_try_advisory_xact_lock($1) as locked", [
          lockKey,
        ]);
        if (lock?.locked !== true) return null;
        await tx.query(
          `select set_config(name, '0', true) from unnest(array['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) as name`,
        );
        return { gave: await work(tx) };
      }),
  );
}

/** Polls until another process has released the lock. */
async function untilLocked<T>(tryLock: () => Promise<{ readonly gave: T } | null>): Promise<T> {
  const giveUpAt = performance.now() + migrationTimeoutMs;
  for (;;) {
    const done = await tryLock();
    if (done !== null) return done.gave;
    if (performance.now() > giveUpAt)
      throw new Error(
        `Another process has been migrating this database for ${migrationTimeoutMs / 60_000} minutes.`,
      );
    await sleep(migrationLockPollMs);
  }
}

/** One transaction: lock, look, apply. */
async function applyNext(
  db: Database,
  migrations: readonly Migration[],
): Promise<{ readonly file: string; readonly isOurs: boolean } | null> {
  const next = await withMigrationLock(db, async (tx) => {
    const [table] = await tx.query<{ exists: boolean }>(FIND_TABLE);
    if (table?.exists !== true) {
      await tx.query(
        `create table public.schema_migration (
           version integer primary key,
           name text not null,
           sha256 text not null,
           applied_at timestamptz not null default now()
         )`,
      );
    }
    const applied = await tx.query<Applied>(LIST_APPLIED);
    const found = nextOf(migrations, applied);
    if (found !== null && found.concurrentIndex === null) await apply(tx, found);
    return found;
  });
  if (next === null) return null;
  const { file, concurrentIndex } = next;
  return { file, isOurs: concurrentIndex === null || (await buildIndex(db, next, concurrentIndex)) };
}

/**
 * On a separate connection, under the same lock. An interrupted build leaves an invalid index, which is rebuilt. False: another
 * process was first.
 */
async function buildIndex(db: Database, migration: Migration, index: string): Promise<boolean> {
  const client = await db.pool.connect();
  const ask = async (text: string, values: readonly unknown[] = []) => {
    const statement = { text, values: [...values], query_timeout: migrationTimeoutMs };
    return (await client.query<{ locked?: unknown }>(statement)).rows;
  };
  try {
    for (const setting of ["statement_timeout", "lock_timeout"]) await ask(`set ${setting} = 0`);
    await untilLocked(async () => {
      const [lock] = await ask("select pg_try_advisory_lock($1) as locked", [lockKey]);
      return lock?.locked === true ? { gave: null } : null;
    });
    const isApplied = await ask("select 1 from public.schema_migration where version = $1", [
      migration.version,
    ]);
    if (isApplied.length > 0) return false;
    await ask(`drop index concurrently if exists public.${index}`);
    await ask(migration.sql);
    await noteApplied(ask, migration);
    return true;
  } finally {
    // Its settings and its lock end with it.
    client.release(true);
  }
}

/** The first migration that is not applied; throws when folder and database don't belong together. */
function nextOf(migrations: readonly Migration[], applied: readonly Applied[]): Migration | null {
  for (const [index, row] of applied.entries()) {
    const migration = migrations[index];
    if (migration === undefined) {
      throw new Error(
        `The database is newer than this program: it has ${row.name}, which this program does not know. ` +
          "Run the newer version again, or restore the backup from before the upgrade.",
      );
    }
    if (migration.version < row.version) {
      throw new Error(
        `${migration.file} is missing in the database, though the later ${row.name} is applied. ` +
          "Migrations only go forward: give it a number after the last applied one.",
      );
    }
    if (migration.version > row.version) {
      throw new Error(
        `The database has ${row.name}, which this program does not have. Put the file back: an applied migration stays.`,
      );
    }
    if (migration.sha256 !== row.sha256) {
      throw new Error(
        `${migration.file} was changed after it had been applied to this database. ` +
          "Restore the original file, and write the change as a new migration.",
      );
    }
  }
  return migrations[applied.length] ?? null;
}

async function apply(tx: Database, migration: Migration): Promise<void> {
  try {
    await tx.query(`set local lock_timeout = ${tableLockTimeoutMs}`);
    await tx.query({ text: migration.sql, timeoutMs: migrationTimeoutMs });
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    if (GIVES_WAY.has(error.code ?? "")) throw new TableInUse(migration.file, error);
    const line =
      error.position === undefined
        ? ""
        : `:${migration.sql.slice(0, Number(error.position) - 1).split("\n").length}`;
    throw new Error(
      `Migration ${migration.file}${line} failed, nothing of it was applied: ${error.message} (${error.code})`,
      { cause: error },
    );
  }
  await noteApplied(async (text, values) => await tx.query(text, values), migration);
}

/** A lock that was not to be had in time, and a deadlock. */
const GIVES_WAY = new Set(["55P03", "40P01"]);

async function noteApplied(
  ask: (text: string, values: readonly unknown[]) => Promise<unknown>,
  { version, file, sha256, compatibleBackTo }: Migration,
): Promise<void> {
  const row = { version, name: basename(file, ".sql"), sha256 };
  // The table has the column since the first migration that has a value for it.
  const all = compatibleBackTo === null ? row : { ...row, compatible_back_to: compatibleBackTo };
  const places = Object.keys(all).map((_, index) => `$${index + 1}`);
  await ask(
    `insert into public.schema_migration (${Object.keys(all).join(", ")}) values (${places.join(", ")})`,
    Object.values(all),
  );
}
