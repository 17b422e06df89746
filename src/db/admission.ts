import { grouped } from "./group.ts";
import type { Database } from "./pool.ts";
import { CLAIM, CLAIMED_COLUMNS, claimValues, type ClaimedRun, type RunCredential } from "./runs.ts";

/**
 * Waiting runs looked at when those at the head can't all run. Those of a busy credential beyond it wait for the next go.
 */
const LOOK_AHEAD = 200;

interface Waiting {
  readonly id: string;
  /** What one of its credentials asks for; null: it has none. */
  readonly slot: string | null;
  readonly credentialId: string | null;
  readonly strategyId: string | null;
  readonly strategyVersion: number | null;
  readonly concurrency: number | null;
}

/**
 * Gives a worker that has room for `limit` more those of the account's waiting runs that may run now: the account is under its
 * concurrency, their credentials under theirs. Admitted and leased in one transaction, which holds the account's row so that two
 * admissions of one account follow each other. What is admitted is begun: nothing piles up before other accounts' runs.
 */
export async function admitRuns(
  db: Database,
  accountId: string,
  owner: string,
  limit: number,
): Promise<readonly ClaimedRun[]> {
  // Most looks find nothing, or no room: that takes no lock. Whatever makes room or waits is looked at after that.
  if (!(await mayAdmit(db, accountId))) return [];
  return await db.transaction(async (tx) => {
    // Sent together, one after the other: the second sees what was committed before the lock was had.
    const [, [room], first] = await Promise.all([
      tx.query(`select 1 from account where id = $1 for no key update`, [accountId]),
      tx.query<{ free: number }>({ name: "read_account_room", text: ROOM, values: [accountId] }),
      listWaiting(tx, accountId, limit),
    ]);
    const wanted = Math.min(limit, room?.free ?? 0);
    if (wanted <= 0) return [];
    let waiting = first;
    let ids = await chooseRuns(tx, waiting, wanted);
    if (ids.length < wanted && new Set(first.map(({ id }) => id)).size >= limit && limit < LOOK_AHEAD) {
      waiting = await listWaiting(tx, accountId, LOOK_AHEAD);
      ids = await chooseRuns(tx, waiting, wanted);
    }
    if (ids.length === 0) return [];
    const runs = await tx.query<Omit<ClaimedRun, "credentials">>({
      name: "admit_runs",
      text: `update run set admitted_at = app_now(), ${CLAIM}
        from unnest($1::text[]) as given (run_id), account
        where run.id = given.run_id and account.id = run.account_id and run.admitted_at is null
          and run.ended_at is null and run.lease_owner is null and run.parked_at is null
        returning ${CLAIMED_COLUMNS}`,
      values: claimValues(ids, owner),
    });
    const needs = Map.groupBy(waiting, ({ id }) => id);
    return runs.map((run) => ({ ...run, credentials: credentialsOf(needs.get(run.id) ?? []) }));
  });
}

function credentialsOf(needs: readonly Waiting[]): readonly RunCredential[] {
  return needs.flatMap(({ slot, credentialId, strategyId, strategyVersion }) =>
    slot === null || credentialId === null || strategyId === null || strategyVersion === null
      ? []
      : [{ slot, credentialId, strategyId, strategyVersion }],
  );
}

/** Of an account. The two halves are an index each. */
const WAITS = `(exists (select from run where run.account_id = account.id and admitted_at is null and ended_at is null
    and parked_at is null and resumed_at is null)
  or exists (select from run where run.account_id = account.id and admitted_at is null and ended_at is null
    and parked_at is null and resumed_at is not null))`;
const ROOM = `select concurrency - (
    select count(*) from run where run.account_id = account.id and admitted_at is not null and ended_at is null
  )::int as free from account where id = $1`;

async function mayAdmit(db: Database, accountId: string): Promise<boolean> {
  const rows = await db.query<{ may: boolean }>({
    name: "may_admit_runs",
    text: `select ${WAITS} and (${ROOM}) > 0 as may from account where id = $1`,
    values: [accountId],
  });
  return rows[0]?.may ?? false;
}

/** Those that a person has decided on first, then in the order of their triggers; a row for each credential. */
async function listWaiting(tx: Database, accountId: string, limit: number): Promise<readonly Waiting[]> {
  return await tx.query<Waiting>({
    name: "list_waiting_runs",
    text: `select waiting.id, used.slot, used.credential_id as "credentialId", used.strategy_id as "strategyId",
        used.strategy_version as "strategyVersion", used.concurrency
      from ((select id, 0 as place, resumed_at as at from run where account_id = $1 and admitted_at is null
               and ended_at is null and parked_at is null and resumed_at is not null
             order by resumed_at, id limit $2)
            union all
            (select id, 1 as place, created_at as at from run where account_id = $1 and admitted_at is null
               and ended_at is null and parked_at is null and resumed_at is null
             order by created_at, id limit $2)) waiting
      left join run_credential used on used.run_id = waiting.id
      order by waiting.place, waiting.at, waiting.id, used.slot`,
    values: [accountId, limit],
  });
}

/** In the order given; a run waits while one of its credentials is at its limit. */
async function chooseRuns(
  tx: Database,
  waiting: readonly Waiting[],
  free: number,
): Promise<readonly string[]> {
  const limited = [
    ...new Set(waiting.flatMap((run) => (run.concurrency === null ? [] : [run.credentialId]))),
  ];
  const load = new Map<string | null, number>();
  if (limited.length > 0) {
    const rows = await tx.query<{ credentialId: string; count: number }>(
      `select used.credential_id as "credentialId", count(*)::int as count
       from run_credential used join run on run.id = used.run_id
       where used.credential_id = any($1) and run.admitted_at is not null and run.ended_at is null
       group by used.credential_id`,
      [limited],
    );
    for (const row of rows) load.set(row.credentialId, row.count);
  }
  const byRun = Map.groupBy(waiting, (run) => run.id);
  const chosen: string[] = [];
  for (const [id, needs] of byRun) {
    if (chosen.length >= free) break;
    if (
      needs.some(
        (need) => need.concurrency !== null && (load.get(need.credentialId) ?? 0) >= need.concurrency,
      )
    ) {
      continue;
    }
    for (const need of needs) load.set(need.credentialId, (load.get(need.credentialId) ?? 0) + 1);
    chosen.push(id);
  }
  return chosen;
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

/** Accounts with runs that wait: the process that was told of them may be lost, or have no room. One step an account. */
export async function listAccountsWithWaitingRuns(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ accountId: string }>({
    name: "list_accounts_with_waiting_runs",
    text: `select id as "accountId" from account where ${WAITS}`,
  });
  return rows.map((row) => row.accountId);
}

/** The run row is the truth, a job only the message: admitted runs that nobody holds and that have no job get one. */
export async function addMissingJobs(db: Database): Promise<number> {
  const rows = await db.query<{ id: string }>(
    `select run.id from run where run.admitted_at is not null and run.ended_at is null and run.lease_owner is null
       and not exists (select 1 from graphile_worker.jobs where jobs.key = run.id) limit 1000`,
  );
  if (rows.length > 0)
    await addRunJobs(
      db,
      rows.map((row) => row.id),
    );
  return rows.length;
}
