import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import pg from "pg";
import type { Database } from "./pool.ts";

type Migration = { version: number; file: string; sql: string; sha256: string };
type Applied = { version: number; name: string; sha256: string };

/** Any number that is ours alone: every process that migrates this database, or grants rights in it, takes this advisory lock. */
const lockKey = 7_203_155_419;
/** A migration may rewrite a large table, or wait for the one of another process. */
const migrationTimeoutMs = 30 * 60_000;

/**
 * Brings the database to the folder's last migration, forward only; each file `NNNN_name.sql` in its
 * own transaction. Any number of processes may do so at once. Gives the files it applied itself.
 * Throws, and changes nothing, when an applied file was changed or is unknown to this program.
 */
export async function migrate(db: Database, folder: string): Promise<{ applied: string[] }> {
  const migrations = await readMigrations(folder);
  const applied: string[] = [];
  for (;;) {
    const file = await applyNext(db, migrations);
    if (file === null) return { applied };
    applied.push(file);
  }
}

/**
 * The first migration that the database lacks, null when it is up to date. Reads only. Throws, as `migrate` does, when folder
 * and database don't belong together.
 */
export async function findPendingMigration(db: Database, folder: string): Promise<string | null> {
  const migrations = await readMigrations(folder);
  const isThere = (await db.query(FIND_TABLE))[0]?.["exists"] === true;
  return nextOf(migrations, isThere ? await db.query<Applied>(LIST_APPLIED) : [])?.file ?? null;
}

const FIND_TABLE = "select to_regclass('public.schema_migration') is not null as exists";
const LIST_APPLIED = "select version, name, sha256 from public.schema_migration order by version";

/** The migrations of a folder in their order. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql") && !name.startsWith("."));
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
    if (/^\s*(begin|start\s+transaction|commit|rollback)(\s+(work|transaction))?\s*;/im.test(sql)) {
      throw new Error(
        `${join(folder, file)}: begins or ends a transaction. Each migration runs in one already: remove these statements.`,
      );
    }
    migrations.push({ version, file, sql, sha256: createHash("sha256").update(sql).digest("hex") });
  }
  return migrations;
}

/** Waits until no other process migrates, and keeps others from it until the transaction ends; the pool's time-outs don't count in it. */
export async function lockMigrations(tx: Database): Promise<void> {
  await tx.query(
    `select set_config(name, '0', true) from unnest(array['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) as name`,
  );
  await tx.query({
    text: "select pg_advisory_xact_lock($1)",
    values: [lockKey],
    timeoutMs: migrationTimeoutMs,
  });
}

/** One transaction: lock, look, apply. The lock ends with it, so this works through a transaction pooler too. */
async function applyNext(db: Database, migrations: readonly Migration[]): Promise<string | null> {
  return await db.transaction(async (tx) => {
    await lockMigrations(tx);
    const [found] = await tx.query<{ exists: boolean }>(FIND_TABLE);
    if (found?.exists !== true) {
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
    const next = nextOf(migrations, applied);
    if (next === null) return null;
    await apply(tx, next);
    return next.file;
  });
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
          "Put back the file as it was, and write the change as a new migration.",
      );
    }
  }
  return migrations[applied.length] ?? null;
}

async function apply(tx: Database, migration: Migration): Promise<void> {
  try {
    await tx.query({ text: migration.sql, timeoutMs: migrationTimeoutMs });
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    const line =
      error.position === undefined
        ? ""
        : `:${migration.sql.slice(0, Number(error.position) - 1).split("\n").length}`;
    throw new Error(
      `Migration ${migration.file}${line} failed, nothing of it was applied: ${error.message} (${error.code})`,
      { cause: error },
    );
  }
  await tx.query("insert into public.schema_migration (version, name, sha256) values ($1, $2, $3)", [
    migration.version,
    basename(migration.file, ".sql"),
    migration.sha256,
  ]);
}
