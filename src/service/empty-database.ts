import { basename } from "node:path";
import { findUsedTable } from "#db/backups/load.ts";
import { listPendingMigrations, migrate, readMigrations } from "#db/connection/migrate.ts";
import { directSource, isPooled, openPool, type Database } from "#db/connection/pool.ts";
import type { Log } from "#lib/log.ts";
import { MIGRATIONS, migrateOpened, openDatabase } from "./open-database.ts";
import { StartRefused, type Config } from "./settings/settings.ts";

/** The migrations of another database, in their order. */
export type AppliedMigrations = readonly { readonly name: string; readonly sha256: string }[];

/**
 * Opens an empty database (the embedded one is created), gives it the schema of these migrations for `work`, which loads rows as the
 * owner, and migrates it to this version afterwards. Throws StartRefused, and has then changed nothing, if the database has rows, or this
 * program does not have these migrations.
 */
export async function loadEmptyDatabase<T>(
  config: Config,
  log: Log,
  applied: AppliedMigrations,
  work: (owner: Database) => Promise<T>,
): Promise<T> {
  await requireKnown(applied);
  const database = await openDatabase(config, log, { olderSchema: "keep" });
  const { db, source, ownerSource } = database;
  const owner =
    ownerSource === null && !isPooled(source)
      ? db
      : openPool(ownerSource ?? directSource(source), { applicationName: "latchkey restore", max: 2 });
  try {
    const used = await findUsedTable(owner);
    if (used !== undefined)
      throw new StartRefused(
        `The database is not empty: its table ${used} has rows. Restore into a new data folder, or an empty database. Nothing was written.`,
      );
    await migrate(owner, MIGRATIONS, { through: applied.length, onWait: (message) => log.warn(message) });
    const { files } = await listPendingMigrations(owner, MIGRATIONS);
    if ((await readMigrations(MIGRATIONS)).length - files.length !== applied.length)
      throw new StartRefused(
        "The database has tables of a later version than the backup's. Restore into a database without tables. Nothing was written.",
      );
    const done = await work(owner);
    await migrateOpened(database, log);
    return done;
  } finally {
    if (owner !== db) await owner.end();
    await database.close();
  }
}

async function requireKnown(applied: AppliedMigrations): Promise<void> {
  const known = await readMigrations(MIGRATIONS);
  for (const [at, { name, sha256 }] of applied.entries()) {
    const migration = known[at];
    if (migration !== undefined && basename(migration.file, ".sql") === name && migration.sha256 === sha256)
      continue;
    throw new StartRefused(
      `The backup was made by another version of Latchkey: this one does not have its migration ${name}. Restore it with the version that ` +
        "made it or a later one. Nothing was written.",
    );
  }
}
