import { createHash, randomBytes } from "node:crypto";
import { userInfo } from "node:os";
import { join, resolve } from "node:path";
import { isRunning } from "#lib/process-mark.ts";
import type { EmbeddedPostgres } from "#db/embedded/start.ts";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { migrateJobs } from "#db/runs/jobs.ts";
import { migrate, readMigrations } from "#db/connection/migrate.ts";
import type { Database, DatabaseSource } from "#db/connection/pool.ts";
import { openPool, urlOf } from "#db/connection/pool.ts";
import { serverFolder } from "./server-folder.ts";

/**
 * Databases for test files: each a clone of one migrated template, made in some 30 ms.
 *
 *     const { db, drop } = await createTestDatabase();
 *     after(drop);
 *
 * `npm test` starts a server for all files and names it in LATCHKEY_TEST_DATABASE (a URL). A file run
 * by hand (`node --test test/db/x.pg.test.ts`) shares one embedded server in the temporary directory.
 */
export type TestDatabase = { connectionString: string; db: Database; drop: () => Promise<void> };

const projectFolder = resolve(import.meta.dirname, "..");
const migrationsFolder = join(projectFolder, "src/db/migrations");
/** A clone copies files and a busy machine is slow: tests of time-outs set their own. */
const patience = {
  connectTimeoutMs: 20_000,
  statementTimeoutMs: 60_000,
  queryTimeoutMs: 65_000,
  lockTimeoutMs: 60_000,
  idleInTransactionTimeoutMs: 60_000,
};
/** Held while a template is made: a number that nothing else locks. */
const templateLockKey = 5_519_720_361;

let server: Promise<EmbeddedPostgres> | null = null;

/** A new database with all migrations applied, and a pool on it. `drop` ends the pool and removes it. */
export async function createTestDatabase(options: { max?: number } = {}): Promise<TestDatabase> {
  return await clone(await prepareTemplate(await testServer()), options);
}

/** A new database without any table. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  return await clone("template0", {});
}

/** A copy of a database of this server that nobody is connected to. */
export async function cloneTestDatabase(template: string): Promise<TestDatabase> {
  return await clone(template, {});
}

async function clone(template: string, options: { max?: number }): Promise<TestDatabase> {
  const source = await testServer();
  const name = `latchkey_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  await withMaintenance(
    source,
    // Half the CPU time of a copy through the log, 20 ms of 39.
    (db) => db.query(`create database ${name} template ${template} strategy file_copy`),
  );
  const connectionString = urlOf(onDatabase(source, name));
  const db = openPool(
    { connectionString },
    { applicationName: "latchkey-test", max: options.max ?? 10, ...patience },
  );
  return {
    connectionString,
    db,
    drop: async () => {
      await db.end();
      await withMaintenance(source, (maintenance) =>
        maintenance.query(`drop database if exists ${name} with (force)`),
      );
    },
  };
}

/** Makes the template of the present migrations when the server does not have it yet; gives its name. */
export async function prepareTemplate(source: DatabaseSource): Promise<string> {
  const url = urlOf(source);
  let template = templates.get(url);
  if (template === undefined) templates.set(url, (template = makeTemplate(source)));
  return await template;
}

/** By server. */
const templates = new Map<string, Promise<string>>();

async function makeTemplate(source: DatabaseSource): Promise<string> {
  const migrations = await readMigrations(migrationsFolder);
  const hash = createHash("sha256").update(
    JSON.stringify(migrations.map(({ file, sha256 }) => [file, sha256])),
  );
  const name = `latchkey_template_${hash.digest("hex").slice(0, 16)}`;
  await withMaintenance(source, async (db) => {
    if (await exists(db, name)) return;
    await db.transaction(async (lock) => {
      // A transaction for its lock; CREATE DATABASE itself goes over another connection.
      await lock.query("set local idle_in_transaction_session_timeout = 0");
      await lock.query("select pg_advisory_xact_lock($1)", [templateLockKey]);
      if (await exists(db, name)) return;
      const draft = `${name}_draft`;
      await db.query(`drop database if exists ${draft} with (force)`);
      await db.query(`create database ${draft}`);
      await onDraft(onDatabase(source, draft), async (target) => {
        await migrateAll(target);
        await settleCatalogs(target);
      });
      // The first connection after that leaves a file that the first one to each clone would have to make.
      await onDraft(onDatabase(source, draft), async (target) => void (await target.query("select 1")));
      await db.query(`alter database ${draft} rename to ${name}`);
    });
  });
  return name;
}

async function onDraft(source: DatabaseSource, work: (target: Database) => Promise<void>): Promise<void> {
  const target = openPool(source, { applicationName: "latchkey-test", ...patience });
  try {
    await work(target);
  } finally {
    await target.end();
  }
}

/**
 * Marks the rows of the catalogs as committed, which each clone would do for itself, page by page, with a copy of each page in the log. Our own
 * tables stay as they are: once vacuumed, statements on them would be planned otherwise than in a new installation.
 */
async function settleCatalogs(db: Database): Promise<void> {
  const catalogs = await db.query<{ name: string }>(
    "select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace = 'pg_catalog'::regnamespace",
  );
  for (const { name } of catalogs) await db.query(`vacuum ${name}`);
}

/** As a start of the service does it. */
export async function migrateAll(db: Database): Promise<void> {
  await migrate(db, migrationsFolder);
  await migrateJobs(db);
}

/** Of the server that test databases are on, for another process. */
export async function testServerUrl(): Promise<string> {
  return urlOf(await testServer());
}

async function exists(db: Database, name: string): Promise<boolean> {
  return (await db.query("select 1 from pg_database where datname = $1", [name])).length > 0;
}

async function testServer(): Promise<DatabaseSource> {
  const given = process.env["LATCHKEY_TEST_DATABASE"];
  if (given !== undefined && given !== "") return { connectionString: given };
  server ??= startShared();
  return (await server).ownerConnection;
}

/** One folder a project and user: files run at the same time share its server, the last one stops it. */
async function startShared(): Promise<EmbeddedPostgres> {
  const key = createHash("sha256").update(`${projectFolder} ${userInfo().uid}`).digest("hex").slice(0, 12);
  const shared = await startEmbeddedPostgres({ dataDir: join(serverFolder(), `latchkey-dev-${key}`) });
  await withMaintenance(shared.ownerConnection, dropLeftOvers);
  // When the file has nothing left to do. A killed file's server is taken over by the next one.
  process.once("beforeExit", () => void shared.stop());
  return shared;
}

/** Databases of test processes that were killed. */
async function dropLeftOvers(db: Database): Promise<void> {
  const found = await db.query<{ name: string }>(
    `select datname as name from pg_database where datname ~ '^latchkey_test_\\d+_[0-9a-f]+$'`,
  );
  for (const { name } of found) {
    if (!isRunning(Number(name.split("_")[2])))
      await db.query(`drop database if exists ${name} with (force)`);
  }
}

async function withMaintenance<T>(source: DatabaseSource, work: (db: Database) => Promise<T>): Promise<T> {
  return await work(maintenanceOf(onDatabase(source, "postgres")));
}

/** One pool for each server, as long as the process lives: a connection costs as much as what is asked on it. */
const maintenance = new Map<string, Database>();

function maintenanceOf(source: DatabaseSource): Database {
  const url = urlOf(source);
  let db = maintenance.get(url);
  if (db === undefined) {
    db = openPool(source, { applicationName: "latchkey-test", max: 2, ...patience });
    // What is idle keeps no process from its end.
    db.pool.options.allowExitOnIdle = true;
    maintenance.set(url, db);
  }
  return db;
}

function onDatabase(source: DatabaseSource, database: string): DatabaseSource {
  const url = new URL(urlOf(source));
  url.pathname = `/${database}`;
  return { connectionString: url.href };
}
