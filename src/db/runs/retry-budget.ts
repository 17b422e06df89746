import { HELD, leaseValues, type Lease } from "./lease.ts";
import type { Database } from "#db/connection/pool.ts";

/**
 * Takes one of a run's retries, which all its nodes and processes share. False: none is left. Undefined: the lease is lost.
 */
export async function takeRetry(db: Database, held: Lease, retriesMax: number): Promise<boolean | undefined> {
  const rows = await db.query<{ isGranted: boolean }>({
    name: "take_retry",
    text: `update run set retries = least(retries, $4) + 1 where id = $1 and ${HELD} returning retries <= $4 as "isGranted"`,
    values: [...leaseValues(held), retriesMax],
  });
  return rows[0]?.isGranted;
}
