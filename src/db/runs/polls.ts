import { HELD, leaseValues, RUN_HELD, type Lease } from "./lease.ts";
import { GOES_ON } from "./lines.ts";
import type { Database } from "#db/connection/pool.ts";

/** The value of `run.line` for a run that waits for a time instead of a credential or throttle. */
export const CLOCK = "clock";

/** A poll; `ordinal` is 0 outside a loop. */
export interface PollPlace {
  readonly nodeId: string;
  readonly ordinal: number;
}

export interface Poll {
  /** Unsatisfying answers. */
  readonly asks: number;
  /** Since the first of them, in milliseconds. */
  readonly lastedMs: number;
}

/** Counts an unsatisfying answer. Undefined: the lease is lost. */
export async function notePoll(
  db: Database,
  lease: Lease,
  poll: PollPlace & { readonly accountId: string },
): Promise<Poll | undefined> {
  const rows = await db.query<Poll>({
    name: "note_poll",
    text: `insert into run_poll (account_id, run_id, node_id, ordinal) select $4, $1, $5, $6 where ${RUN_HELD}
      on conflict (run_id, node_id, ordinal) do update set asks = run_poll.asks + 1, asked_at = app_now()
      returning asks, (extract(epoch from app_now() - began_at) * 1000)::float8 as "lastedMs"`,
    values: [...leaseValues(lease), poll.accountId, poll.nodeId, poll.ordinal],
  });
  return rows[0];
}

/**
 * Hands the run back until its next poll, this many milliseconds later: it holds nothing, and its timeout is paused. An answer counts as
 * progress, so earlier lost leases no longer count. False: the lease is lost.
 */
export async function waitForPoll(
  db: Database,
  lease: Lease,
  { nodeId, ordinal, waitMs }: PollPlace & { readonly waitMs: number },
): Promise<boolean> {
  const rows = await db.query({
    name: "wait_to_ask",
    text: `with waiting as (
        update run set line = '${CLOCK}', parked_at = app_now(), lease_owner = null, admitted_at = null, resumed_at = null,
          lost_leases = 0
        where id = $1 and ${HELD} returning id
      )
      update run_poll set wakes_at = app_now() + $6::float8 * interval '1 ms' from waiting
      where run_id = waiting.id and node_id = $4 and ordinal = $5 returning 1`,
    values: [...leaseValues(lease), nodeId, ordinal, waitMs],
  });
  return rows.length > 0;
}

const WOKEN_AT_ONCE = 1_000;

/** Wakes runs whose next poll is due, before runs that never began. Returns the accounts whose runs may be admitted. */
export async function wakePolls(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ accountId: string }>({
    name: "wake_polls",
    // If the run has ended in the meantime, only the time is cleared.
    text: `with due as (
        select run_poll.run_id, node_id, ordinal from run_poll join run on run.id = run_poll.run_id
        where wakes_at <= app_now() order by wakes_at limit $1 for no key update of run skip locked
      ), taken as (
        update run_poll set wakes_at = null from due
        where run_poll.run_id = due.run_id and run_poll.node_id = due.node_id and run_poll.ordinal = due.ordinal
      ), woken as (
        update run set line = null, ${GOES_ON} from due
        where run.id = due.run_id and run.line = '${CLOCK}' and run.parked_at is not null and run.ended_at is null
        returning run.account_id
      )
      select distinct account_id as "accountId" from woken`,
    values: [WOKEN_AT_ONCE],
  });
  return rows.map(({ accountId }) => accountId);
}
