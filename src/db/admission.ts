import type { Database } from "./pool.ts";

/** Waiting runs looked at in one go. Those of a busy credential beyond it wait for the next go. */
const LOOK_AHEAD = 200;

interface Waiting {
  readonly id: string;
  readonly credentialId: string | null;
  readonly concurrency: number | null;
}

/**
 * Gives their job to the account's waiting runs that may run now: the account is under its concurrency, their credentials
 * under theirs. One transaction, which holds the account's row so that two admissions of one account follow each other.
 * Gives how many were admitted.
 */
export async function admitRuns(db: Database, accountId: string): Promise<number> {
  // A busy account gets many triggers and has no room: that takes one look and no lock. Whatever makes room admits after that.
  if (!(await hasRoom(db, accountId))) return 0;
  return await db.transaction(async (tx) => {
    const accounts = await tx.query<{ concurrency: number }>(
      `select concurrency from account where id = $1 for no key update`,
      [accountId],
    );
    const active = await tx.query<{ count: number }>(
      `select count(*)::int as count from run where account_id = $1 and admitted_at is not null and ended_at is null`,
      [accountId],
    );
    const free = (accounts[0]?.concurrency ?? 0) - (active[0]?.count ?? 0);
    if (free <= 0) return 0;
    const waiting = await tx.query<Waiting>(
      `select waiting.id, used.credential_id as "credentialId", used.concurrency
       from ((select id, 0 as place, resumed_at as at from run where account_id = $1 and admitted_at is null
                and ended_at is null and parked_at is null and resumed_at is not null
              order by resumed_at, id limit ${LOOK_AHEAD})
             union all
             (select id, 1 as place, created_at as at from run where account_id = $1 and admitted_at is null
                and ended_at is null and parked_at is null and resumed_at is null
              order by created_at, id limit ${LOOK_AHEAD})) waiting
       left join run_credential used on used.run_id = waiting.id
       order by waiting.place, waiting.at, waiting.id`,
      [accountId],
    );
    const ids = await chooseRuns(tx, waiting, free);
    if (ids.length === 0) return 0;
    await tx.query(`update run set admitted_at = app_now() where id = any($1)`, [ids]);
    await addRunJobs(tx, ids);
    return ids.length;
  });
}

async function hasRoom(db: Database, accountId: string): Promise<boolean> {
  const rows = await db.query<{ hasRoom: boolean }>({
    name: "account_has_room",
    text: `select concurrency > (
        select count(*) from run where run.account_id = account.id and admitted_at is not null and ended_at is null
      ) as "hasRoom" from account where id = $1`,
    values: [accountId],
  });
  return rows[0]?.hasRoom ?? false;
}

/** Those that a person has decided on first, then in the order of their triggers; a run waits while one of its credentials is at its limit. */
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

/** Accounts with runs that wait: an admission may have been lost with the process that owed it. */
export async function listAccountsWithWaitingRuns(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ accountId: string }>(
    `select distinct account_id as "accountId" from run
     where admitted_at is null and ended_at is null and parked_at is null`,
  );
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
