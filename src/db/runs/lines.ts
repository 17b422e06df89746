import { limits } from "#domain/limits.ts";
import { HELD, leaseValues, type Lease } from "./lease.ts";
import type { Database } from "#db/connection/pool.ts";

/** The value of `run.line` for a run that waits for a browser, or was called and must be taken by a worker that has one. */
export const BROWSER_LINE = "browser";

/** The run is in this queue. The condition of the index run_line. */
export const STANDS_FOR = (line: string): string =>
  `line = ${line} and parked_at is not null and ended_at is null`;

/** The credential's login lock is free. */
export const LOGIN_IS_FREE = "(login_run_id is null or login_until <= app_now())";

/** Its timeout has been paused since it queued, and it goes before other runs that wait for a slot. */
export const GOES_ON = `parked_at = null, resumed_at = app_now(), deadline_at = run.deadline_at + (app_now() - run.parked_at)`;

/**
 * For the credentials `free` (id), whose rows are locked: calls the first queued run of each, which then holds the login lock until it is
 * admitted, for a limited time. A locked run is skipped for now. Defines `called`.
 */
export const CALL_TO_LOG_IN = (turnMs: string): string => `head as (
    select free.id as credential_id, first.id as run_id from free cross join lateral (
      select id from run where ${STANDS_FOR("free.id")} order by created_at, id limit 1 for no key update skip locked
    ) first
  ), called as (
    update run set line = null, ${GOES_ON} from head where run.id = head.run_id and run.parked_at is not null
    returning run.id, run.account_id, head.credential_id
  ), handed as (
    update credential set login_run_id = called.id, login_until = app_now() + ${turnMs}::bigint * interval '1 ms'
    from called where credential.id = called.credential_id
  )`;

/**
 * Puts the run into a queue: it holds nothing, is ordered by the time of its trigger, and its timeout is paused, including the time that it
 * has already waited. An unused login lock is released. False: the lease is lost.
 */
export async function joinQueue(
  db: Database,
  held: Lease,
  { line, waitedMs }: { readonly line: string; readonly waitedMs: number },
): Promise<boolean> {
  const rows = await db.query({
    name: "stand_in_line",
    text: `with stood as (
        update run set line = $4, parked_at = app_now() - $5::float8 * interval '1 ms', lease_owner = null, admitted_at = null,
          resumed_at = null
        where id = $1 and ${HELD} returning id
      ), given_back as (
        update credential set login_run_id = null, login_until = null from stood
        where login_run_id = stood.id and credential.id in (select credential_id from run_credential where run_id = stood.id)
      )
      select 1 from stood`,
    values: [...leaseValues(held), line, waitedMs],
  });
  return rows.length > 0;
}

/** Calls the first run of each of these queues if it is due. Returns the accounts whose runs may be admitted. */
export async function callNextQueued(db: Database, lines: readonly string[]): Promise<readonly string[]> {
  return [...(await callForLogin(db, lines)), ...(await callForThrottles(db, lines))];
}

/** Calls overdue runs: the caller that should have done so was killed, or never took its own turn. */
export async function callOverdueQueued(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ line: string }>({
    name: "list_lines",
    // Queue by queue, by the index: their lengths don't matter.
    text: `with recursive lines (line) as (
        (select line from run where line is not null and ended_at is null order by line limit 1)
        union all
        select (select line from run where line > lines.line and ended_at is null order by line limit 1)
        from lines where lines.line is not null
      ) select line from lines where line is not null`,
  });
  const lines = rows.map(({ line }) => line);
  return lines.length === 0
    ? []
    : [...(await callNextQueued(db, lines)), ...(await callForDeletedCredentials(db, lines))];
}

interface Called {
  readonly accountId: string;
}

const accountsOf = (rows: readonly Called[]): readonly string[] => rows.map(({ accountId }) => accountId);

async function callForLogin(db: Database, lines: readonly string[]): Promise<readonly string[]> {
  return accountsOf(
    await db.query<Called>({
      name: "call_to_log_in",
      text: `with free as (
          select id from credential where id = any($1) and ${LOGIN_IS_FREE} order by id for no key update skip locked
        ), ${CALL_TO_LOG_IN("$2")}
        select account_id as "accountId" from called`,
      values: [lines, limits.loginTurnMs],
    }),
  );
}

/** Calls all runs that queue for a deleted credential: each will find it missing. */
async function callForDeletedCredentials(db: Database, lines: readonly string[]): Promise<readonly string[]> {
  return accountsOf(
    await db.query<Called>({
      name: "call_orphans",
      text: `update run set line = null, ${GOES_ON}
        where run.id in (
          select waiting.id from unnest($1::text[]) as given (line)
          cross join lateral (
            select id from run where ${STANDS_FOR("given.line")} order by created_at, id limit $2 for no key update skip locked
          ) waiting
          where given.line like 'cred\\_%' and not exists (select from credential where credential.id = given.line)
        ) and run.parked_at is not null returning run.account_id as "accountId"`,
      values: [lines, ORPHANS_AT_ONCE],
    }),
  );
}

const ORPHANS_AT_ONCE = 100;

/** How far ahead runs are called, by the spacing; and how soon the next slot must be due. */
const CALLED_MS = 1_000;
const CALLED_MAX = 20;
const SOON_MS = 2_500;
/** The maximum share of the account's slots for called runs of one throttle. */
const CALLED_SHARE = 4;

/** Calls enough runs for each throttle whose next slot is soon, counting those already called. */
async function callForThrottles(db: Database, lines: readonly string[]): Promise<readonly string[]> {
  const throttles = lines.filter((line) => line.includes("/"));
  if (throttles.length === 0) return [];
  return accountsOf(
    await db.query<Called>({
      name: "call_to_throttles",
      text: `with slot as (
          select blueprint_id || '/' || node_id as line,
            greatest(least(ceil($2::float8 / coalesce(spacing_ms, 1)), account.concurrency / $6::int, $3), 1)::int as places
          from throttle_slot join account on account.id = throttle_slot.account_id
          where blueprint_id = any($4) and blueprint_id || '/' || node_id = any($1)
            and next_at + coalesce(spacing_ms, 0) * interval '1 ms' <= app_now() + $5::float8 * interval '1 ms'
          order by blueprint_id, node_id for no key update of throttle_slot
        ), next as (
          select first.id from slot cross join lateral (
            select count(*) as runs from run where line = slot.line and parked_at is null and ended_at is null
          ) under_way cross join lateral (
            select id from run where ${STANDS_FOR("slot.line")} order by created_at, id
            limit greatest(slot.places - under_way.runs, 0) for no key update skip locked
          ) first
        )
        update run set ${GOES_ON} from next where run.id = next.id and run.parked_at is not null
        returning run.account_id as "accountId"`,
      values: [
        throttles,
        CALLED_MS,
        CALLED_MAX,
        throttles.map((line) => line.slice(0, line.indexOf("/"))),
        SOON_MS,
        CALLED_SHARE,
      ],
    }),
  );
}

/** A called run got its first throttle slot: it leaves the queue and its timeout continues. False: the lease is lost. */
export async function leaveQueue(db: Database, held: Lease, waitedMs: number): Promise<boolean> {
  const rows = await db.query({
    name: "leave_line",
    text: `update run set line = null, deadline_at = deadline_at + $4::float8 * interval '1 ms' where id = $1 and ${HELD} returning 1`,
    values: [...leaseValues(held), waitedMs],
  });
  return rows.length > 0;
}
