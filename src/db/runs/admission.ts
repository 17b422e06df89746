import { runStatusesBefore } from "#domain/run.ts";
import { chooseRuns, inTurn, LOAD, type Waiting } from "./choose-runs.ts";
import { hasLeft } from "./left-runs.ts";
import { groupsInForce } from "./group-limits.ts";
import { BROWSER_LINE } from "./lines.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  CLAIM,
  CLAIMED_COLUMNS,
  claimValues,
  CREDENTIALS,
  type ClaimedRun,
  type RunCredential,
} from "./runs.ts";

/** Waiting runs to consider beyond the wanted number, if some at the head can't run. */
const LOOK_AHEAD = 200;
/** How long to wait for an account's row lock, which `apply` or another worker's admission may hold. */
const LOCK_TIMEOUT_MS = 100;
/** Rounds per admission; in each, runs that wait for a busy credential are set aside. */
const LOOKS_MAX = 10;
/** After finding one credential free and another busy this many times, a run reserves its slots. */
const PASSED_OVER_MAX = 3;
/** Marks a run that waits for all of its credentials and reserves them. */
const RESERVES = "";
/** The maximum number of an account's runs that reserve slots at a time, oldest first. */
const RESERVING_MAX = 20;

interface AdmitOptions {
  readonly isLikely?: boolean;
  readonly hasBrowser?: boolean;
}

/** Runs given to a worker, in the order in which they begin: by turn. */
export interface Admitted {
  readonly runs: readonly ClaimedRun[];
  /** Whether there may be more that were not considered. */
  readonly isMore: boolean;
  /** Whether runs are still waiting for a slot of the account or of a credential. False: none waits. */
  readonly mayWait: boolean;
}

/**
 * Admits up to `limit` of the account's waiting runs to a worker, within the concurrency limits of the account and of the credentials.
 * They are admitted and leased in one transaction that locks the account's row, so that admissions of one account are sequential.
 * Admitted runs begin immediately: no backlog builds up before other accounts' runs. A run whose credential is busy is set aside until
 * the credential is free. A run that needs several credentials and repeatedly finds one busy reserves them after a while; otherwise it
 * would starve. Runs whose rows are locked are skipped until a later poll; those behind them are admitted, unless credentials limit them.
 * If the account's row is locked, this fails with `lock_not_available`. `isLikely`: the caller expects waiting runs. `hasBrowser`: the
 * worker has a browser; without one, it leaves runs that need one to others.
 */
export async function admitRuns(
  db: Database,
  accountId: string,
  owner: string,
  limit: number,
  { isLikely = false, hasBrowser = true }: AdmitOptions = {},
): Promise<Admitted> {
  // Most polls find nothing, or no free slot, without a lock. Later events cause another poll.
  const seen = isLikely ? { waits: true, hasRoom: true } : await look(db, accountId);
  if (!seen.waits || !seen.hasRoom) return { runs: [], isMore: false, mayWait: seen.waits };
  const plain = await admitPlain(db, accountId, owner, { limit, lookAt: limit, hasBrowser });
  const { isAll } = plain;
  let { runs, mayWait } = plain;
  if (plain.isAnyLocked) {
    // Those behind a run that another transaction is changing, such as a cancel, don't wait for that.
    const left = limit - runs.length;
    const lookAt = left + LOOK_AHEAD;
    const behind = await admitPlain(db, accountId, owner, { limit: left, lookAt, hasBrowser });
    [runs, mayWait] = [[...runs, ...behind.runs], true];
  }
  if (isAll || runs.length === limit) return { runs, isMore: false, mayWait };
  const others = await admitByChoice(db, accountId, owner, { limit: limit - runs.length, hasBrowser });
  return { runs: [...runs, ...others.runs], isMore: others.isMore, mayWait: true };
}

/**
 * The simple case, decided by the server in one round trip: runs at the head that only wait for the account's concurrency (their
 * credentials are unlimited, and no run is set aside). `lookAt`: how many of them are considered. `isAll`: there is no free slot, or
 * nothing else waits. `isAnyLocked`: some were skipped, because other transactions lock them.
 */
async function admitPlain(
  db: Database,
  accountId: string,
  owner: string,
  {
    limit,
    lookAt,
    hasBrowser,
  }: { readonly limit: number; readonly lookAt: number; readonly hasBrowser: boolean },
): Promise<{
  readonly runs: readonly ClaimedRun[];
  readonly isAll: boolean;
  readonly isAnyLocked: boolean;
  readonly mayWait: boolean;
}> {
  // The second statement sees everything committed before the lock was acquired.
  const [, rows] = await db.transactAll(
    [
      { name: "lock_account", text: LOCK_ACCOUNT, values: [accountId] },
      {
        name: nameFor("admit_plain_runs", hasBrowser),
        text: hasBrowser ? ADMIT_PLAIN.any : ADMIT_PLAIN.withoutBrowser,
        values: [accountId, owner, runStatusesBefore("running"), limit, lookAt],
      },
    ],
    { lockTimeoutMs: LOCK_TIMEOUT_MS },
  );
  const found = rows as readonly (ClaimedRun & {
    readonly mayBeMore: boolean;
    readonly free: number;
    readonly ready: number;
  })[];
  // Without any run there is still one row, with the facts about the others.
  const runs = found.flatMap(({ mayBeMore: _mayBeMore, free: _free, ready: _ready, ...run }) =>
    run.id === null ? [] : [run],
  );
  const { mayBeMore = false, free = 0, ready = 0 } = found[0] ?? {};
  const isAll = !mayBeMore;
  const isAnyLocked = runs.length < Math.min(limit, free, ready);
  return { runs, isAll, isAnyLocked, mayWait: !isAll || runs.length >= Math.min(limit, free) };
}

/** The general case: waiting runs with the slots of their credentials. */
async function admitByChoice(
  db: Database,
  accountId: string,
  owner: string,
  { limit, hasBrowser }: { readonly limit: number; readonly hasBrowser: boolean },
): Promise<Omit<Admitted, "mayWait">> {
  const admit = async (tx: Database): Promise<Omit<Admitted, "mayWait">> => {
    // Sent together and executed in order: later ones see everything committed before the lock was acquired.
    const [, [room], freed, first] = await Promise.all([
      tx.query({ name: "lock_account", text: LOCK_ACCOUNT, values: [accountId] }),
      tx.query<{ free: number }>({ name: "read_account_room", text: ROOM, values: [accountId] }),
      listFreed(tx, accountId, limit, hasBrowser),
      listWaiting(tx, accountId, limit, hasBrowser),
    ]);
    const wanted = Math.min(limit, room?.free ?? 0);
    if (wanted <= 0) return { runs: [], isMore: false };
    let [ready, lookedAt] = [first, limit];
    for (let looks = 1; ; looks++) {
      const waiting = inTurn([...freed, ...ready]);
      const { chosen, blocked } = await chooseRuns(tx, accountId, waiting, wanted);
      if (blocked.size > 0) await setAside(tx, blocked);
      const isMore = chosen.length < wanted && new Set(ready.map(({ id }) => id)).size >= lookedAt;
      if (isMore && looks < LOOKS_MAX) {
        lookedAt = wanted + LOOK_AHEAD;
        ready = await listWaiting(tx, accountId, lookedAt, hasBrowser);
        continue;
      }
      return { runs: await takeLeases(tx, chosen, waiting, owner), isMore };
    }
  };
  return await db.transaction(admit, { lockTimeoutMs: LOCK_TIMEOUT_MS });
}

const LOCK_ACCOUNT = `select 1 from account where id = $1 for no key update`;

async function takeLeases(
  tx: Database,
  ids: readonly string[],
  waiting: readonly Waiting[],
  owner: string,
): Promise<readonly ClaimedRun[]> {
  if (ids.length === 0) return [];
  const runs = await tx.query<Omit<ClaimedRun, "credentials">>({
    name: "admit_runs",
    text: `update run set admitted_at = app_now(), waits_for = null, passed_over = 0, ${CLAIM}
      from account
      where run.id in (select id from run where id = any($1) and ${MAY_BEGIN} order by id for no key update skip locked) and account.id = run.account_id and run.admitted_at is null
        and run.ended_at is null and run.lease_owner is null and run.parked_at is null
      returning ${CLAIMED_COLUMNS}`,
    values: claimValues(ids, owner),
  });
  const needs = Map.groupBy(waiting, ({ id }) => id);
  return runs
    .toSorted((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id))
    .map((run) => ({ ...run, credentials: credentialsOf(needs.get(run.id) ?? []) }));
}

function credentialsOf(needs: readonly Waiting[]): readonly RunCredential[] {
  return needs.flatMap(({ slot, credentialId, strategyId, strategyVersion }) =>
    slot === null || credentialId === null || strategyId === null || strategyVersion === null
      ? []
      : [{ slot, credentialId, strategyId, strategyVersion }],
  );
}

const WAITS = `admitted_at is null and ended_at is null and parked_at is null`;
/** Runs that this worker may take: those that were called to a browser go to a worker that has one. */
const isFor = (hasBrowser: boolean): string =>
  hasBrowser ? WAITS : `${WAITS} and line is distinct from '${BROWSER_LINE}'`;
/** The name of a statement of which there are two. */
const nameFor = (name: string, hasBrowser: boolean): string =>
  hasBrowser ? name : `${name}_without_browser`;
/** The counts of an account. Each of the three parts uses an index. */
const HAS_WAITING = `(exists (select from run where run.account_id = account.id and ${WAITS}
    and resumed_at is null and waits_for is null)
  or exists (select from run where run.account_id = account.id and ${WAITS}
    and resumed_at is not null and waits_for is null)
  or exists (select from run where run.account_id = account.id and ${WAITS} and waits_for is not null))`;
const ROOM = `select concurrency - (
    select count(*) from run where run.account_id = account.id and admitted_at is not null and ended_at is null
  )::int as free from account where id = $1`;

/**
 * The current limit of each strategy, which also applies to runs already waiting. `strategies` has their ids; the account is `$1`.
 */
const inForce = (
  strategies: string,
): string => `select strategy.id, (version.document::json ->> 'concurrency')::int as concurrency
  from strategy join strategy_version version on version.account_id = strategy.account_id
    and version.strategy_id = strategy.id and version.version = strategy.current_version
  where strategy.account_id = $1 and strategy.id in (${strategies})`;

/** The place of a waiting run, by which it is admitted before others. Word by word that of the index run_blocked_in_turn. */
const PLACE = `case when resumed_at is null then 11 - priority else 0 end`;

/**
 * Runs with a decided review first, then by priority, then in the order of their triggers. `$1`: the account; the other parameter: how
 * many of each.
 */
const heads = (
  limit: string,
  hasBrowser: boolean,
): string => `(select id, 0 as place, resumed_at as at from run where account_id = $1 and ${isFor(hasBrowser)}
    and resumed_at is not null and waits_for is null order by resumed_at, id limit ${limit})
  union all
  (select id, 11 - priority as place, created_at as at from run where account_id = $1 and ${WAITS}
    and resumed_at is null and waits_for is null order by priority desc, created_at, id limit ${limit})`;

/** Its time to begin has not passed (docs/api.md#queue-options); the worker's timers end those that are late. */
const MAY_BEGIN = `(run.expires_at is null or run.expires_at > app_now() or run.claimed_at is not null)`;

const admitPlainBy = (hasBrowser: boolean): string => `with room as (
    ${ROOM}
  ), aside as (
    select exists (select from run where account_id = $1 and ${WAITS} and waits_for is not null) as is_any
  ), waiting as (
    select head.id, row_number() over (order by head.place, head.at, head.id) as turn,
      exists (select from run_credential used where used.run_id = head.id and exists (
        select from (${inForce("used.strategy_id")}) limits where limits.concurrency is not null))
        or exists (select from run_group where run_group.run_id = head.id) as is_limited
    from (${heads("$5", hasBrowser)}) head
  ), limited as (
    select min(turn) as turn from waiting where is_limited
  ), ready as (
    select waiting.id, waiting.turn from waiting, aside, limited
    where not aside.is_any and waiting.turn < coalesce(limited.turn, waiting.turn + 1)
  ), picked as materialized (
    select run.id from run join ready on ready.id = run.id and ${MAY_BEGIN}
    order by ready.turn limit (select greatest(least(free, $4::int), 0) from room) for no key update of run skip locked
  ), claimed as (
    update run set admitted_at = app_now(), waits_for = null, ${CLAIM}
    from account
    where run.id in (select id from picked)
      and account.id = run.account_id and run.admitted_at is null and run.ended_at is null and run.lease_owner is null
      and run.parked_at is null
    returning ${CLAIMED_COLUMNS}
  )
  select room.free > 0 and (aside.is_any or limited.turn is not null) as "mayBeMore", room.free,
    (select count(*) from ready)::int as ready, claimed.*,
    ${CREDENTIALS} as credentials
  from room cross join aside cross join limited left join claimed on true left join ready on ready.id = claimed.id
  order by ready.turn`;
const ADMIT_PLAIN = { any: admitPlainBy(true), withoutBrowser: admitPlainBy(false) } as const;

async function look(
  db: Database,
  accountId: string,
): Promise<{ readonly waits: boolean; readonly hasRoom: boolean }> {
  const rows = await db.query<{ waits: boolean; hasRoom: boolean }>({
    name: "may_admit_runs",
    text: `select waits, waits and (${ROOM}) > 0 as "hasRoom"
      from (select ${HAS_WAITING} as waits from account where id = $1) seen`,
    values: [accountId],
  });
  return rows[0] ?? { waits: false, hasRoom: false };
}

/** A row for each credential of the runs of `waiting` (id, place, at), and one for the group of those that have one. */
const NEEDS = `select waiting.id, waiting.place, waiting.at, used.slot, used.credential_id as "credentialId",
    used.strategy_id as "strategyId", used.strategy_version as "strategyVersion", limits.concurrency
  from waiting left join run_credential used on used.run_id = waiting.id
    left join (${inForce(`select needed.strategy_id from run_credential needed join waiting on waiting.id = needed.run_id`)}) limits
      on limits.id = used.strategy_id
  union all
  select waiting.id, waiting.place, waiting.at, null, grouped.name, null, null, limits.concurrency
  from waiting join run_group grouped on grouped.run_id = waiting.id
    join (${groupsInForce(`select needed.blueprint_id from run_group needed join waiting on waiting.id = needed.run_id`)}) limits
      on limits.id = grouped.blueprint_id
  order by place, at, id, slot`;

async function listWaiting(
  tx: Database,
  accountId: string,
  limit: number,
  hasBrowser: boolean,
): Promise<readonly Waiting[]> {
  return await tx.query<Waiting>({
    name: nameFor("list_waiting_runs", hasBrowser),
    text: `with waiting as (${heads("$2", hasBrowser)})
      ${NEEDS}`,
    values: [accountId, limit],
  });
}

/**
 * The first runs that were set aside for a credential which has free slots again, as many as it has; and all runs that reserve slots, so
 * that later runs respect them.
 */
async function listFreed(
  tx: Database,
  accountId: string,
  limit: number,
  hasBrowser: boolean,
): Promise<readonly Waiting[]> {
  const aside = `account_id = $1 and ${isFor(hasBrowser)} and waits_for is not null`;
  return await tx.query<Waiting>({
    name: nameFor("list_freed_runs", hasBrowser),
    // Credential by credential, by the index, so that the length of each queue does not matter.
    text: `with recursive busy (credential_id) as (
        (select waits_for from run where ${aside} order by waits_for limit 1)
        union all
        select (select waits_for from run where ${aside} and waits_for > busy.credential_id order by waits_for limit 1)
        from busy where busy.credential_id is not null
      ), load as (
        ${LOAD}
      ), wanted as (
        select busy.credential_id, used.strategy_id, grouped.blueprint_id from busy left join lateral (
          select id from run where ${aside} and waits_for = busy.credential_id
          order by ${PLACE}, coalesce(resumed_at, created_at), id limit 1
        ) head on true left join lateral (
          select strategy_id from run_credential
          where run_credential.run_id = head.id and run_credential.credential_id = busy.credential_id
          -- Two slots may hold the same credential.
          limit 1
        ) used on true left join run_group grouped on grouped.run_id = head.id and grouped.name = busy.credential_id
        where busy.credential_id is not null
      ), limits as (
        ${inForce("select strategy_id from wanted")}
        union all (${groupsInForce("select blueprint_id from wanted")})
      ), free as (
        select wanted.credential_id, wanted.credential_id = $4 as reserves,
          case when wanted.credential_id = $4 then $3
            else greatest(least(coalesce(limits.concurrency - coalesce(load.count, 0), $2), $2), 0) end as places
        from wanted left join limits on limits.id = coalesce(wanted.strategy_id, wanted.blueprint_id) left join load using (credential_id)
      ), waiting as (
        select first.* from free
        cross join lateral (
          select id, case when free.reserves then -1 else ${PLACE} end as place,
            coalesce(resumed_at, created_at) as at
          from run where ${aside} and waits_for = free.credential_id
          order by ${PLACE}, coalesce(resumed_at, created_at), id limit free.places
        ) first
      )
      ${NEEDS}`,
    values: [accountId, limit, RESERVING_MAX, RESERVES],
  });
}

/**
 * Sets runs aside, each until the given credential is free; a run that was already set aside is moved to the next credential. A
 * run that is being changed by another transaction at this moment is skipped until the next round.
 */
async function setAside(tx: Database, blocked: ReadonlyMap<string, string>): Promise<void> {
  await tx.query({
    name: "stand_aside",
    text: `update run set passed_over = run.passed_over + (run.waits_for is not null)::int,
        waits_for = case when run.passed_over + (run.waits_for is not null)::int >= $3 then $4 else given.credential_id end
      from unnest($1::text[], $2::text[]) as given (run_id, credential_id)
      where run.id = given.run_id and run.waits_for is distinct from given.credential_id and run.waits_for is distinct from $4
        and run.id in (select id from run where id = any($1) order by id for no key update skip locked)`,
    values: [[...blocked.keys()], [...blocked.values()], PASSED_OVER_MAX, RESERVES],
  });
}

/** An account with runs that a worker might take. */
export interface AccountToServe {
  readonly accountId: string;
  /** Whether some wait to be admitted. */
  readonly waits: boolean;
  /** Whether there are runs that were handed back or abandoned and may continue in a normal worker. */
  readonly isLeft: boolean;
  /** Whether some must continue in quarantine. */
  readonly isSuspect: boolean;
}

/** For the reconciler: the process that was notified of them may be lost or full. By id; a few index steps per account. */
export async function listAccountsToServe(db: Database): Promise<readonly AccountToServe[]> {
  return await db.query<AccountToServe>({
    name: "list_accounts_to_serve",
    text: `select * from (select id as "accountId", ${HAS_WAITING} as waits, ${hasLeft("plain")} as "isLeft",
        ${hasLeft("suspect")} as "isSuspect" from account) seen
      where waits or "isLeft" or "isSuspect" order by "accountId"`,
    values: [],
  });
}
