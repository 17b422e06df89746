import type { Database } from "./pool.ts";

/**
 * Takes the node's next free moment, one every `spacingMs` for all runs and workers together. Gives how long it is until then,
 * in milliseconds.
 */
export async function takeThrottleSlot(
  db: Database,
  node: { readonly accountId: string; readonly blueprintId: string; readonly nodeId: string },
  spacingMs: number,
): Promise<number> {
  const rows = await db.query<{ waitMs: number }>({
    name: "take_throttle_slot",
    text: `insert into throttle_slot (account_id, blueprint_id, node_id, next_at) values ($1, $2, $3, app_now())
      on conflict (account_id, blueprint_id, node_id) do update
        set next_at = greatest(throttle_slot.next_at + $4::float8 * interval '1 ms', app_now())
      returning (extract(epoch from next_at - app_now()) * 1000)::float8 as "waitMs"`,
    values: [node.accountId, node.blueprintId, node.nodeId, spacingMs],
  });
  return Math.max(rows[0]?.waitMs ?? 0, 0);
}
