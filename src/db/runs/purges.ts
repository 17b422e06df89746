import { mayPurge } from "#db/backups/snapshot.ts";
import type { Database, Statement } from "#db/connection/pool.ts";

/** A purged run. */
export interface PurgedRun {
  readonly id: string;
  readonly accountId: string;
  /** The keys of its objects, which must be removed from the store after COMMIT. */
  readonly blobKeys: readonly string[];
  /** Whether a worker may have left objects to which no row refers, because the run was taken over. */
  readonly mayHaveMore: boolean;
}

/** When a run's retention ends. It is the index's expression, so that only due runs are read. */
const DUE_MS = `(extract(epoch from ended_at at time zone 'UTC') * 1000)::bigint + retention_ms`;
const IS_DUE = `ended_at is not null and purged_at is null
  and ${DUE_MS} <= (extract(epoch from app_now()) * 1000)::bigint`;

/**
 * Purges a run's data: inputs, journal, reviews, results, and the outputs and details of its writes. The run's row stays, with the time and
 * reason (docs/decisions/0029). `due` selects and locks the runs.
 */
const purge = (due: string): string => `with due as (
    ${due}
  ), purged as (
    update run set purged_at = app_now(), purge_reason = $1, name = null, metadata = convert_to('{}', 'UTF8'),
      ignored_keys = convert_to('[]', 'UTF8'), error_detail = null, tally = null
    from due where run.id = due.id returning run.id, run.account_id, run.lease_epoch
  ), result as (
    delete from run_result using due where run_id = due.id
  ), change as (
    delete from review_change using review, due where review_id = review.id and review.run_id = due.id
  ), asked as (
    delete from review using due where run_id = due.id
  ), write as (
    delete from run_write using due where run_id = due.id
  ), turn as (
    delete from run_turn using due where run_id = due.id
  ), poll as (
    delete from run_poll using due where run_id = due.id
  ), live as (
    delete from live_picture using due where run_id = due.id
  ), searched as (
    delete from run_search using due where run_id = due.id
  ), step as (
    delete from run_step using due where run_id = due.id
  ), input as (
    delete from run_input using due where run_id = due.id returning account_id, octet_length(content) as bytes
  ), object as (
    delete from blob using due where run_id = due.id returning run_id, account_id, size_bytes as bytes, key
  ), noted as (
    insert into account_usage_change (account_id, bytes)
    select account_id, -sum(bytes) from (
      select account_id, bytes from input where bytes is not null union all select account_id, bytes from object) removed
    group by account_id having sum(bytes) > 0
  )
  select id, account_id as "accountId", lease_epoch > 1 as "mayHaveMore",
    array(select key from object where object.run_id = purged.id) as "blobKeys"
  from purged`;

const PURGE_DUE = purge(
  `select id from run where ${IS_DUE} order by ${DUE_MS} limit $2 for no key update skip locked`,
);
const PURGE_ONE = purge(
  "select id from run where id = $2 and ended_at is not null and purged_at is null for no key update",
);

const purgeRuns = async (db: Database, text: string, values: Statement["values"]): Promise<PurgedRun[]> =>
  await db.query<PurgedRun>({ text, values });

/** Purges up to `limit` runs whose retention has ended and that are not locked, in one statement. None while a backup is made. */
export async function purgeDueRuns(db: Database, limit: number): Promise<readonly PurgedRun[]> {
  return await db.transaction(async (tx) =>
    (await mayPurge(tx)) ? await purgeRuns(tx, PURGE_DUE, ["retention", limit]) : [],
  );
}

/**
 * One run, before its time. Part of a transaction. Undefined: it has not ended, or is purged already; "backup": a backup is being made, which
 * has the run's rows and needs its objects.
 */
export async function purgeRun(tx: Database, runId: string): Promise<PurgedRun | "backup" | undefined> {
  if (!(await mayPurge(tx))) return "backup";
  return (await purgeRuns(tx, PURGE_ONE, ["operator", runId]))[0];
}

/** How long the most overdue purge has been due, in milliseconds; 0: none is due. */
export async function readPurgeLag(db: Database): Promise<number> {
  const [row] = await db.query<{ lagMs: number }>({
    name: "read_purge_lag",
    text: `select coalesce(max((extract(epoch from app_now()) * 1000)::bigint - due), 0)::float8 as "lagMs"
     from (select ${DUE_MS} as due from run where ${IS_DUE} order by ${DUE_MS} limit 1) oldest`,
  });
  return row?.lagMs ?? 0;
}
