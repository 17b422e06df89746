import type { Database } from "#db/connection/pool.ts";

/** The last migration of graphile-worker's version that this program has. */
export const JOBS_VERSION = 20;

/** Brings graphile-worker's own schema to its version; it handles concurrent starts of several processes itself. */
export async function migrateJobs(db: Database): Promise<void> {
  // graphile-worker itself decides whether it can work with a newer schema.
  if ((await readJobsVersion(db)) === JOBS_VERSION) return;
  // Loaded here, because other commands and starts don't need it.
  const { runMigrations } = await import("graphile-worker");
  await runMigrations({ pgPool: db.pool });
}

/** Whether graphile-worker's schema exists in its current version or a newer one. */
export const areJobsMigrated = async (db: Database): Promise<boolean> =>
  (await readJobsVersion(db)) >= JOBS_VERSION;

/** The last migration of graphile-worker's schema; 0: there is none. */
async function readJobsVersion(db: Database): Promise<number> {
  const [table] = await db.query<{ exists: boolean }>(
    "select to_regclass('graphile_worker.migrations') is not null as exists",
  );
  if (table?.exists !== true) return 0;
  const [last] = await db.query<{ version: number | null }>(
    "select max(id) as version from graphile_worker.migrations",
  );
  return last?.version ?? 0;
}
