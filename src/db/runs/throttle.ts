import type { Database } from "#db/connection/pool.ts";

/** A node whose requests are throttled, across all runs and workers; or a host, over all Blueprints of the account. */
export interface ThrottledNode {
  readonly accountId: string;
  /** Of a host: the account's id. */
  readonly blueprintId: string;
  /** Of a host: its origin. */
  readonly nodeId: string;
}

export const throttledHost = (accountId: string, origin: string): ThrottledNode => ({
  accountId,
  blueprintId: accountId,
  nodeId: origin,
});

export interface ThrottleSlot {
  /** Time until the slot. */
  readonly waitMs: number;
  /** Identifies the slot, to return it. */
  readonly at: string;
}

/**
 * Takes the node's next slot, one every `spacingMs` across all runs and workers, if it is within `withinMs`. Undefined: it is later, and
 * nothing was taken.
 */
export async function takeThrottleSlot(
  db: Database,
  node: ThrottledNode,
  spacingMs: number,
  withinMs: number,
): Promise<ThrottleSlot | undefined> {
  const rows = await db.query<ThrottleSlot>({
    name: "take_throttle_slot",
    text: `insert into throttle_slot as slot (account_id, blueprint_id, node_id, next_at, spacing_ms)
        values ($1, $2, $3, app_now(), $4::float8)
      on conflict (account_id, blueprint_id, node_id) do update
        set next_at = greatest(slot.next_at + $4::float8 * interval '1 ms', app_now()), spacing_ms = excluded.spacing_ms
        where slot.next_at + $4::float8 * interval '1 ms' <= app_now() + $5::float8 * interval '1 ms'
      returning greatest(extract(epoch from next_at - app_now()) * 1000, 0)::float8 as "waitMs", next_at::text as at`,
    values: [node.accountId, node.blueprintId, node.nodeId, spacingMs, withinMs],
  });
  if (rows.length === 0) await noteSpacing(db, node, spacingMs);
  return rows[0];
}

/** Runs are called from the queue by the stored spacing: with an earlier, shorter one they would be called too soon, again and again. */
async function noteSpacing(db: Database, node: ThrottledNode, spacingMs: number): Promise<void> {
  await db.query({
    name: "note_throttle_spacing",
    text: `update throttle_slot set spacing_ms = $4::float8
      where account_id = $1 and blueprint_id = $2 and node_id = $3 and spacing_ms is distinct from $4::float8`,
    values: [node.accountId, node.blueprintId, node.nodeId, spacingMs],
  });
}

/** Returns an unused slot, unless a later one is already taken. */
export async function returnThrottleSlot(
  db: Database,
  node: ThrottledNode,
  spacingMs: number,
  { at }: ThrottleSlot,
): Promise<void> {
  await db.query({
    name: "give_throttle_slot_back",
    text: `update throttle_slot set next_at = next_at - $4::float8 * interval '1 ms'
      where account_id = $1 and blueprint_id = $2 and node_id = $3 and next_at = $5::timestamptz`,
    values: [node.accountId, node.blueprintId, node.nodeId, spacingMs, at],
  });
}
