import type { Database } from "#db/connection/pool.ts";
import { readDeliveryLag } from "#db/webhooks/webhook-deliveries.ts";

const LATE_MS = 60_000;

/** Advice for `latchkey doctor` when events are not delivered in time although their endpoints work. */
export async function describeDeliveryLag(db: Database): Promise<readonly string[]> {
  const lagMs = await readDeliveryLag(db);
  if (lagMs < LATE_MS) return [];
  const minutes = Math.floor(lagMs / 60_000);
  return [
    `webhook events are delivered ${minutes} min late: check that a worker runs. If one does, its endpoint is slow, or the worker has more runs than time: start another`,
  ];
}
