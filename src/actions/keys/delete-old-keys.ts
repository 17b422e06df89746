import { deleteOutdatedKeys } from "#db/idempotency.ts";
import type { Database } from "#db/connection/pool.ts";

/** One statement deletes in less than a second, however many there are. */
const BATCH = 10_000;

/** Part of the worker's housekeeping: idempotency keys that nobody can use any more. */
export async function deleteOldKeys(db: Database): Promise<void> {
  while ((await deleteOutdatedKeys(db, BATCH)) === BATCH);
}
