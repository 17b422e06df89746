import type { Database } from "#db/connection/pool.ts";
import { until } from "../eventually.ts";

/** What may move without an operator: the workers' own state and search index, counters of attempts, when somebody was last seen. */
const RESTLESS = [
  // Added up every ten minutes.
  "account_usage",
  "account_usage_change",
  "audit_chain",
  "audit_entry",
  "event_listener",
  "live_picture",
  "operator_oidc_attempt",
  "operator_throttle",
  "review_presence",
  "run_search",
  "run_search_progress",
  "throttle_slot",
  "webhook_attempt",
  "webhook_claim",
  "worker",
];

/** Everything that the installation holds, as far as an effect could change it. */
export async function readState(db: Database): Promise<string> {
  // What was begun by the effect before.
  await until("nothing is under way", async () => {
    const busy = await db.query(
      `select 1 from run where ended_at is null and (lease_owner is not null
         or not exists (select from review where review.run_id = run.id and review.status = 'open'))`,
    );
    return busy.length === 0;
  });
  const tables = await db.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public' and tablename <> all($1) order by 1",
    [RESTLESS],
  );
  const state = [];
  for (const { name } of tables) {
    const [row] = await db.query<{ hash: string }>(
      `select md5(coalesce(string_agg(line, ',' order by line), '')) as hash
       from (select (to_jsonb(t) - '{seen_at,last_used_at,attempts,tries,due_at,failing_since}'::text[])::text as line from ${name} t) lines`,
    );
    state.push(`${name} ${row?.hash}`);
  }
  return state.join("\n");
}
