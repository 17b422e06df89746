import type { Database } from "#db/connection/pool.ts";

/** Serialises concurrent calls: the second one plans on the result of the first. */
export async function lockApply(tx: Database): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock(hashtext('latchkey apply'))`);
}
