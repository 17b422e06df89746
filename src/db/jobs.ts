import { runMigrations } from "graphile-worker";
import type { Database } from "./pool.ts";

/** Brings graphile-worker's own schema to its version; it minds several processes that start at once itself. */
export async function migrateJobs(db: Database): Promise<void> {
  await runMigrations({ pgPool: db.pool });
}
