import type { Database } from "#db/connection/pool.ts";

/** The value of `run.line` for a run that may not begin yet. */
export const DELAY = "delay";

const DUE_AT_ONCE = 1_000;

/**
 * What is due of `run_timer`: delayed runs wait for a slot from now on, and runs that have not begun in their time fail. Returns the
 * accounts whose runs may be admitted. A locked run is left to the next call.
 */
export async function passRunTimers(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ accountId: string }>({
    name: "pass_run_timers",
    // A run of which both are due, after an outage, has expired: it is in `late` alone, so that no row is updated twice.
    text: `with due as (
        select timer.run_id, timer.kind from run_timer timer join run on run.id = timer.run_id
        where timer.at <= app_now() order by timer.at limit $1 for no key update of run skip locked
      ), passed as (
        delete from run_timer using due where run_timer.run_id = due.run_id and run_timer.kind = due.kind
      ), begun as (
        update run set line = null, parked_at = null from due
        where run.id = due.run_id and due.kind = 'begin' and run.line = '${DELAY}' and run.parked_at is not null
          and run.ended_at is null and (run.expires_at is null or run.expires_at > app_now())
        returning run.account_id
      ), late as (
        update run set status = 'failed', progress_step = 'failed', ended_at = app_now(), error_kind = 'expired',
          error_detail = 'No worker had taken it when the time of Latchkey-Expires-In ended.'
        from due where run.id = due.run_id and due.kind = 'expire' and run.claimed_at is null and run.ended_at is null
      )
      select distinct account_id as "accountId" from begun`,
    values: [DUE_AT_ONCE],
  });
  return rows.map(({ accountId }) => accountId);
}
