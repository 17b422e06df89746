import { runStatusesBefore } from "#domain/run.ts";
import { grouped } from "./group.ts";
import type { Database } from "./pool.ts";
import { CLAIM, CLAIMED_COLUMNS, claimValues, type ClaimedRun, type RunCredential } from "./runs.ts";

/** Waiting runs looked at, beyond those that are wanted, when some at the head can't run. */
const LOOK_AHEAD = 200;
/** An account whose row is held (by `apply`, or by another worker's admission that takes long) is looked at again later. */
const LOCK_TIMEOUT_MS = 100;
/** Looks in one go; with each, those that wait for a busy credential stand aside. */
const LOOKS_MAX = 10;

interface Waiting {
  readonly id: string;
  /** 0: a person has decided on it, and it goes before all others. */
  readonly place: number;
  readonly at: Date;
  /** What one of its credentials asks for; null: it has none. */
  readonly slot: string | null;
  readonly credentialId: string | null;
  readonly strategyId: string | null;
  readonly strategyVersion: number | null;
  readonly concurrency: number | null;
}

/** Runs that a worker was given. */
export interface Admitted {
  readonly runs: readonly ClaimedRun[];
  /** Whether there may be more that it did not come to. */
  readonly isMore: boolean;
  /** Whether some are left that a place of the account or of a credential would let begin. False: none waits at all. */
  readonly mayWait: boolean;
}

/**
 * Gives a worker that has room for `limit` more those of the account's waiting runs that may run now: the account is under its
 * concurrency, their credentials under theirs. Admitted and leased in one transaction, which holds the account's row so that two
 * admissions of one account follow each other. What is admitted is begun: nothing piles up before other accounts' runs. A run
 * whose credential is busy stands aside until that is free, and nobody looks at it again before. A run whose row another transaction
 * holds is passed over until a later look; when the account's own row is held, this fails with `lock_not_available`. `isLikely`: some
 * wait, as far as the caller knows.
 */
export async function admitRuns(
  db: Database,
  accountId: string,
  owner: string,
  limit: number,
  isLikely = false,
): Promise<Admitted> {
  // Most looks find nothing, or no room: that takes no lock. Whatever makes room or waits is looked at after that.
  const seen = isLikely ? { waits: true, hasRoom: true } : await look(db, accountId);
  if (!seen.waits || !seen.hasRoom) return { runs: [], isMore: false, mayWait: seen.waits };
  const plain = await admitPlain(db, accountId, owner, limit);
  const { runs, mayWait } = plain;
  if (plain.isAll || runs.length === limit) return { runs, isMore: false, mayWait };
  const others = await admitByChoice(db, accountId, owner, limit - runs.length);
  return { runs: [...runs, ...others.runs], isMore: others.isMore, mayWait: true };
}

/**
 * Those at the head that nothing keeps waiting but the account's concurrency (no credential of theirs has a limit, and no run of
 * the account stands aside), chosen by the server in one round trip. `isAll`: there is no room, or nothing else waits.
 */
async function admitPlain(
  db: Database,
  accountId: string,
  owner: string,
  limit: number,
): Promise<{ readonly runs: readonly ClaimedRun[]; readonly isAll: boolean; readonly mayWait: boolean }> {
  // The second sees what was committed before the lock was had.
  const [, rows] = await db.transactAll(
    [
      { name: "lock_account", text: LOCK_ACCOUNT, values: [accountId] },
      {
        name: "admit_plain_runs",
        text: ADMIT_PLAIN,
        values: [accountId, owner, runStatusesBefore("running"), limit],
      },
    ],
    { lockTimeoutMs: LOCK_TIMEOUT_MS },
  );
  const found = rows as readonly (ClaimedRun & { readonly mayBeMore: boolean; readonly free: number })[];
  // Without any run there is one row all the same, for what it says of the others.
  const runs = found.flatMap(({ mayBeMore: _mayBeMore, free: _free, ...run }) =>
    run.id === null ? [] : [run],
  );
  const isAll = found[0]?.mayBeMore !== true;
  return { runs, isAll, mayWait: !isAll || runs.length >= Math.min(limit, found[0]?.free ?? 0) };
}

/** Any of those that wait, each with the places of its credentials. */
async function admitByChoice(
  db: Database,
  accountId: string,
  owner: string,
  limit: number,
): Promise<Omit<Admitted, "mayWait">> {
  const admit = async (tx: Database): Promise<Omit<Admitted, "mayWait">> => {
    // Sent together, one after the other: the later see what was committed before the lock was had.
    const [, [room], freed, first] = await Promise.all([
      tx.query({ name: "lock_account", text: LOCK_ACCOUNT, values: [accountId] }),
      tx.query<{ free: number }>({ name: "read_account_room", text: ROOM, values: [accountId] }),
      listFreed(tx, accountId, limit),
      listWaiting(tx, accountId, limit),
    ]);
    const wanted = Math.min(limit, room?.free ?? 0);
    if (wanted <= 0) return { runs: [], isMore: false };
    let [ready, lookedAt] = [first, limit];
    for (let looks = 1; ; looks++) {
      const waiting = inTurn([...freed, ...ready]);
      const { chosen, blocked } = await chooseRuns(tx, accountId, waiting, wanted);
      if (blocked.size > 0) await standAside(tx, blocked);
      const isMore = chosen.length < wanted && new Set(ready.map(({ id }) => id)).size >= lookedAt;
      if (isMore && looks < LOOKS_MAX) {
        lookedAt = wanted + LOOK_AHEAD;
        ready = await listWaiting(tx, accountId, lookedAt);
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
    text: `update run set admitted_at = app_now(), waits_for = null, ${CLAIM}
      from account
      where run.id in (select id from run where id = any($1) order by id for no key update skip locked) and account.id = run.account_id and run.admitted_at is null
        and run.ended_at is null and run.lease_owner is null and run.parked_at is null
      returning ${CLAIMED_COLUMNS}`,
    values: claimValues(ids, owner),
  });
  const needs = Map.groupBy(waiting, ({ id }) => id);
  return runs.map((run) => ({ ...run, credentials: credentialsOf(needs.get(run.id) ?? []) }));
}

function credentialsOf(needs: readonly Waiting[]): readonly RunCredential[] {
  return needs.flatMap(({ slot, credentialId, strategyId, strategyVersion }) =>
    slot === null || credentialId === null || strategyId === null || strategyVersion === null
      ? []
      : [{ slot, credentialId, strategyId, strategyVersion }],
  );
}

const WAITS = `admitted_at is null and ended_at is null and parked_at is null`;
/** Of an account. The three parts are an index each. */
const HAS_WAITING = `(exists (select from run where run.account_id = account.id and ${WAITS}
    and resumed_at is null and waits_for is null)
  or exists (select from run where run.account_id = account.id and ${WAITS}
    and resumed_at is not null and waits_for is null)
  or exists (select from run where run.account_id = account.id and ${WAITS} and waits_for is not null))`;
const ROOM = `select concurrency - (
    select count(*) from run where run.account_id = account.id and admitted_at is not null and ended_at is null
  )::int as free from account where id = $1`;

/** Those that a person has decided on first, then in the order of their triggers. `$1` the account, the other how many of each. */
const heads = (
  limit: string,
): string => `(select id, 0 as place, resumed_at as at from run where account_id = $1 and ${WAITS}
    and resumed_at is not null and waits_for is null order by resumed_at, id limit ${limit})
  union all
  (select id, 1 as place, created_at as at from run where account_id = $1 and ${WAITS}
    and resumed_at is null and waits_for is null order by created_at, id limit ${limit})`;

const ADMIT_PLAIN = `with room as (
    ${ROOM}
  ), aside as (
    select exists (select from run where account_id = $1 and ${WAITS} and waits_for is not null) as is_any
  ), waiting as (
    select head.id, row_number() over (order by head.place, head.at, head.id) as turn,
      exists (select from run_credential used where used.run_id = head.id and used.concurrency is not null) as is_limited
    from (${heads("$4")}) head
  ), limited as (
    select min(turn) as turn from waiting where is_limited
  ), claimed as (
    update run set admitted_at = app_now(), waits_for = null, ${CLAIM}
    from account
    where run.id in (select picked.id from run picked where picked.id in (select id from waiting, room, aside, limited
        where not aside.is_any and waiting.turn <= room.free and waiting.turn < coalesce(limited.turn, $4::int + 1)
          and waiting.turn <= $4::int) for no key update skip locked)
      and account.id = run.account_id and run.admitted_at is null and run.ended_at is null and run.lease_owner is null
      and run.parked_at is null
    returning ${CLAIMED_COLUMNS}
  )
  select room.free > 0 and (aside.is_any or limited.turn is not null) as "mayBeMore", room.free, claimed.*,
    (select coalesce(json_agg(json_build_object('slot', slot, 'credentialId', credential_id, 'strategyId', strategy_id,
       'strategyVersion', strategy_version) order by slot), '[]') from run_credential where run_id = claimed.id) as credentials
  from room cross join aside cross join limited left join claimed on true`;

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

/** A row for each credential of the runs of `waiting` (id, place, at). */
const NEEDS = `select waiting.id, waiting.place, waiting.at, used.slot, used.credential_id as "credentialId",
    used.strategy_id as "strategyId", used.strategy_version as "strategyVersion", used.concurrency
  from waiting left join run_credential used on used.run_id = waiting.id
  order by waiting.place, waiting.at, waiting.id, used.slot`;

async function listWaiting(tx: Database, accountId: string, limit: number): Promise<readonly Waiting[]> {
  return await tx.query<Waiting>({
    name: "list_waiting_runs",
    text: `with waiting as (${heads("$2")})
      ${NEEDS}`,
    values: [accountId, limit],
  });
}

/** Those that stand aside for a credential which has places again: as many as it has, the first ones. */
async function listFreed(tx: Database, accountId: string, limit: number): Promise<readonly Waiting[]> {
  const aside = `account_id = $1 and ${WAITS} and waits_for is not null`;
  return await tx.query<Waiting>({
    name: "list_freed_runs",
    // Credential by credential, by the index: what stands behind its first runs costs nothing.
    text: `with recursive busy (credential_id) as (
        (select waits_for from run where ${aside} order by waits_for limit 1)
        union all
        select (select waits_for from run where ${aside} and waits_for > busy.credential_id order by waits_for limit 1)
        from busy where busy.credential_id is not null
      ), load as (
        ${LOAD}
      ), waiting as (
        select first.* from busy left join load using (credential_id)
        cross join lateral (
          select used.concurrency - coalesce(load.count, 0) as places
          from (select id from run where ${aside} and waits_for = busy.credential_id
                order by resumed_at is null, coalesce(resumed_at, created_at), id limit 1) head
          left join run_credential used on used.run_id = head.id and used.credential_id = busy.credential_id
          -- Two slots may hold the same credential.
          limit 1
        ) free
        cross join lateral (
          select id, (resumed_at is null)::int as place, coalesce(resumed_at, created_at) as at
          from run where ${aside} and waits_for = busy.credential_id
          order by resumed_at is null, coalesce(resumed_at, created_at), id
          limit greatest(least(coalesce(free.places, $2), $2), 0)
        ) first
        where busy.credential_id is not null
      )
      ${NEEDS}`,
    values: [accountId, limit],
  });
}

/** How many runs each credential of the account has under way. */
const LOAD = `select used.credential_id, count(*)::int as count
    from run join run_credential used on used.run_id = run.id
    where run.account_id = $1 and run.admitted_at is not null and run.ended_at is null group by used.credential_id`;

function inTurn(waiting: readonly Waiting[]): readonly Waiting[] {
  return waiting.toSorted(
    (a, b) =>
      a.place - b.place || a.at.getTime() - b.at.getTime() || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0),
  );
}

interface Choice {
  readonly chosen: readonly string[];
  /** Those that can't run, each with the busy credential that it waits for. */
  readonly blocked: ReadonlyMap<string, string>;
}

/** In the order given; a run waits while one of its credentials is at its limit. */
async function chooseRuns(
  tx: Database,
  accountId: string,
  waiting: readonly Waiting[],
  wanted: number,
): Promise<Choice> {
  const load = new Map<string | null, number>();
  if (waiting.some(({ concurrency }) => concurrency !== null)) {
    const rows = await tx.query<{ credentialId: string; count: number }>({
      name: "count_credential_load",
      text: `select credential_id as "credentialId", count from (${LOAD}) as load`,
      values: [accountId],
    });
    for (const row of rows) load.set(row.credentialId, row.count);
  }
  const chosen: string[] = [];
  const blocked = new Map<string, string>();
  for (const [id, needs] of Map.groupBy(waiting, (run) => run.id)) {
    if (chosen.length >= wanted) break;
    const busy = needs.find(
      ({ credentialId, concurrency }) => concurrency !== null && (load.get(credentialId) ?? 0) >= concurrency,
    );
    if (busy?.credentialId) {
      blocked.set(id, busy.credentialId);
      continue;
    }
    for (const need of needs) load.set(need.credentialId, (load.get(need.credentialId) ?? 0) + 1);
    chosen.push(id);
  }
  return { chosen, blocked };
}

/** Whoever changes one of them at this moment goes first: it stands aside at the next look. */
async function standAside(tx: Database, blocked: ReadonlyMap<string, string>): Promise<void> {
  await tx.query({
    name: "stand_aside",
    text: `update run set waits_for = given.credential_id
      from unnest($1::text[], $2::text[]) as given (run_id, credential_id)
      where run.id = given.run_id and run.waits_for is distinct from given.credential_id and run.id in (
        select id from run where id = any($1) order by id for no key update skip locked)`,
    values: [[...blocked.keys()], [...blocked.values()]],
  });
}

/** One job a run: its key is the run's id, so that adding it again replaces what waits. */
export async function addRunJobs(db: Database, runIds: readonly string[]): Promise<void> {
  await db.query(
    `select graphile_worker.add_job('execute_run', json_build_object('runId', id), job_key => id, max_attempts => 32767)
     from unnest($1::text[]) as id`,
    [runIds],
  );
}

/** As addRunJobs, for a run that is handed back: a drain hands back all at once. */
export const addRunJob = grouped<string, void>(async (db, runIds) => {
  await addRunJobs(db, runIds);
  return runIds.map(() => undefined);
});

/** As addRunJobs, for a run that can't go on just now. The time is that of the job's own table. */
export async function addRunJobLater(db: Database, runId: string, delayMs: number): Promise<void> {
  await db.query(
    `select graphile_worker.add_job('execute_run', json_build_object('runId', $1::text), job_key => $1, max_attempts => 32767,
       run_at => now() + $2 * interval '1 ms')`,
    [runId, delayMs],
  );
}

/** Accounts with runs that wait: the process that was told of them may be lost, or have no room. One step an account. */
export async function listAccountsWithWaitingRuns(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ accountId: string }>({
    name: "list_accounts_with_waiting_runs",
    text: `select id as "accountId" from account where ${HAS_WAITING}`,
  });
  return rows.map((row) => row.accountId);
}

/** How long a run may wait that could not be carried. */
const FAILED_JOB_MS = 5_000;

/**
 * The run row is the truth, a job only the message: admitted runs that nobody holds and that have no job get one. So do those whose job
 * failed, when it would wait: the job runner takes each lost worker for an attempt of the job, and its pauses grow with them to six hours.
 */
export async function addMissingJobs(db: Database): Promise<number> {
  const rows = await db.query<{ id: string }>(
    `select run.id from run where run.admitted_at is not null and run.ended_at is null and run.lease_owner is null
       and not exists (select 1 from graphile_worker.jobs where jobs.key = run.id
         and (jobs.last_error is null or jobs.run_at < now() + $1 * interval '1 ms')) limit 1000`,
    [FAILED_JOB_MS],
  );
  if (rows.length > 0)
    await addRunJobs(
      db,
      rows.map((row) => row.id),
    );
  return rows.length;
}
