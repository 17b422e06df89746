import { deleteOutdatedKeys } from "#db/idempotency.ts";
import type { Database } from "#db/connection/pool.ts";

/** Rows per statement, so that each takes less than a second. */
const BATCH = 10_000;

/** Part of the worker's housekeeping: deletes outdated idempotency keys. */
export async function deleteOldKeys(db: Database): Promise<void> {
  while ((await deleteOutdatedKeys(db, BATCH)) === BATCH);
}
