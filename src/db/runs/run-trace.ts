import type { Database } from "#db/connection/pool.ts";

/** The `traceparent` of a run's trigger; null: it has none. */
export async function findTraceparent(db: Database, runId: string): Promise<string | null> {
  const rows = await db.query<{ traceparent: string }>({
    name: "find_traceparent",
    text: "select traceparent from run_trace where run_id = $1",
    values: [runId],
  });
  return rows[0]?.traceparent ?? null;
}
