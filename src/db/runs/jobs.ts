import { runMigrations } from "graphile-worker";
import type { Database } from "#db/connection/pool.ts";

/** The last migration of graphile-worker's version that this program has. */
export const JOBS_VERSION = 20;

/** Brings graphile-worker's own schema to its version; it handles concurrent starts of several processes itself. */
export async function migrateJobs(db: Database): Promise<void> {
  await runMigrations({ pgPool: db.pool });
}

/** Whether graphile-worker's schema exists in its current version or a newer one. */
export async function areJobsMigrated(db: Database): Promise<boolean> {
  const [table] = await db.query<{ exists: boolean }>(
    "select to_regclass('graphile_worker.migrations') is not null as exists",
  );
  if (table?.exists !== true) return false;
  const [last] = await db.query<{ version: number | null }>(
    "select max(id) as version from graphile_worker.migrations",
  );
  return (last?.version ?? 0) >= JOBS_VERSION;
}
