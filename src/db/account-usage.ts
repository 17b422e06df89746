import type { Database } from "./connection/pool.ts";

/**
 * The bytes that an account stores: inputs, and objects of steps and results. Sums up the entries since the last call, without blocking
 * their writers.
 */
export async function readStoredBytes(db: Database, accountId: string): Promise<number> {
  const rows = await db.query<{ storedBytes: number }>({
    name: "read_stored_bytes",
    text: `with taken as (
        delete from account_usage_change where account_id = $1 returning bytes
      )
      insert into account_usage (account_id, stored_bytes) select $1, coalesce(sum(bytes), 0) from taken
      on conflict (account_id) do update set stored_bytes = account_usage.stored_bytes + excluded.stored_bytes
      returning stored_bytes::float8 as "storedBytes"`,
    values: [accountId],
  });
  return rows[0]?.storedBytes ?? 0;
}

/** Sums up the entries of all accounts, so that they don't accumulate for accounts that nobody asks about. */
export async function addUpStoredBytes(db: Database): Promise<void> {
  await db.query(
    `with taken as (
       delete from account_usage_change returning account_id, bytes
     )
     insert into account_usage (account_id, stored_bytes)
     select account_id, sum(bytes) from taken group by account_id order by account_id
     on conflict (account_id) do update set stored_bytes = account_usage.stored_bytes + excluded.stored_bytes`,
  );
}

/** Counts an account's runs that wait for a slot, for a busy credential or in a queue, up to `most` of each. */
export async function countQueuedRuns(db: Database, accountId: string, most: number): Promise<number> {
  // The conditions of the indexes run_waiting_in_turn and run_blocked_in_turn, word by word.
  const waiting = `select from run where account_id = $1 and admitted_at is null and ended_at is null and parked_at is null`;
  const rows = await db.query<{ runs: number }>({
    name: "count_queued_runs",
    text: `select ((select count(*) from (${waiting} and resumed_at is null and waits_for is null limit $2) as waiting)
        + (select count(*) from (${waiting} and waits_for is not null limit $2) as blocked)
        + (select count(*) from (select from run where account_id = $1 and parked_at is not null and ended_at is null
            and line is not null limit $2) as in_line))::int as runs`,
    values: [accountId, most],
  });
  return rows[0]?.runs ?? 0;
}

export interface AccountUsage {
  readonly account: string;
  readonly queuedRuns: number;
  readonly storedBytes: number;
}

/** The current usage of all accounts. Counts every waiting run. */
export async function listAccountUsage(db: Database): Promise<readonly AccountUsage[]> {
  return await db.query<AccountUsage>(
    `select slug as account, coalesce(waiting.runs, 0)::int as "queuedRuns",
       (coalesce(usage.stored_bytes, 0) + coalesce(noted.bytes, 0))::float8 as "storedBytes"
     from account
       left join account_usage usage on usage.account_id = account.id
       left join (select account_id, sum(bytes) as bytes from account_usage_change group by account_id) noted
         on noted.account_id = account.id
       left join (select account_id, count(*) as runs from run
           where admitted_at is null and ended_at is null and (parked_at is null and (resumed_at is null or waits_for is not null)
             or parked_at is not null and line is not null)
           group by account_id) waiting on waiting.account_id = account.id
     order by slug`,
  );
}
