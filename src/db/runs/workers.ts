import { failpoint } from "#lib/failpoint.ts";
import type { Database } from "#db/connection/pool.ts";

export interface NewWorker {
  readonly id: string;
  readonly lockKey: number;
  readonly hostname: string;
  readonly pid: number;
}

/** Identifies the server since its last start or promotion: on another one all locks are gone. */
const SERVER = `(extract(epoch from pg_postmaster_start_time())::text || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8))`;

export async function insertWorker(db: Database, worker: NewWorker): Promise<void> {
  await db.query(
    `insert into worker (id, lock_key, hostname, pid, server) values ($1, $2, $3, $4, ${SERVER})`,
    [worker.id, worker.lockKey, worker.hostname, worker.pid],
  );
}

/** Whether any worker has a heartbeat younger than `staleMs`. */
export async function isAnyWorkerAlive(db: Database, staleMs: number): Promise<boolean> {
  const rows = await db.query(
    `select 1 from worker where heartbeat_at > app_now() - $1::bigint * interval '1 ms' limit 1`,
    [staleMs],
  );
  return rows.length > 0;
}

/** The pool ids that graphile-worker locks this worker's jobs with. */
export async function savePoolIds(db: Database, workerId: string, poolIds: readonly string[]): Promise<void> {
  await db.query(`update worker set pool_ids = $2 where id = $1`, [workerId, poolIds]);
}

/** False: the worker's row is gone, because it was taken over; it must stop its runs before it joins again. */
export async function beat(db: Database, workerId: string): Promise<boolean> {
  const rows = await db.query(
    `update worker set heartbeat_at = app_now(), beats = beats + 1 where id = $1 returning 1`,
    [workerId],
  );
  return rows.length > 0;
}

/** Like `beat`, for a worker with a new lock on a new connection. */
export async function beatWithNewLock(db: Database, workerId: string, lockKey: number): Promise<boolean> {
  const rows = await db.query(
    `update worker set heartbeat_at = app_now(), beats = beats + 1, lock_key = $2, server = ${SERVER} where id = $1 returning 1`,
    [workerId, lockKey],
  );
  return rows.length > 0;
}

/** Takes the session advisory lock that signals liveness as long as its connection lives. */
export async function takeLivenessLock(connection: Database, lockKey: number): Promise<void> {
  await connection.query(`select pg_advisory_lock($1)`, [lockKey]);
}

/** The condition of the index: a run with a lease is admitted. */
const LEASED = `lease_owner is not null and admitted_at is not null`;

/**
 * Frees runs of workers that no longer exist: a frozen worker may have claimed a run after it was taken over, before noticing.
 */
export async function freeOrphanedRuns(db: Database): Promise<void> {
  await db.query({
    name: "free_runs_of_nobody",
    text: `update run set lease_owner = null, lease_epoch = lease_epoch + 1, lost_leases = lost_leases + 1
      where id in (select id from run
        where ${LEASED} and not exists (select from worker where worker.id = run.lease_owner)
        order by id for no key update)`,
  });
}

/** A worker's row and lock, as observed by one poll. */
export interface SeenWorker {
  readonly id: string;
  /** Changes with each heartbeat, independently of the clock. */
  readonly sign: string;
  readonly hasLock: boolean;
  /** Whether it took its lock on this server, so that only its end can have freed it. */
  readonly isOfServer: boolean;
}

const SIGN = "worker.beats || ' ' || extract(epoch from worker.heartbeat_at)";
/** An earlier version does not say on which server it is. */
const IS_OF_SERVER = `(worker.server = ${SERVER} or worker.server = '' and worker.heartbeat_at > pg_postmaster_start_time())`;

/** All workers, the observer included, in the order in which they joined. */
export async function listWorkers(db: Database): Promise<readonly SeenWorker[]> {
  // Reads pg_locks instead of trying the lock: an attempt would look like life to others (docs/decisions/0005).
  return await db.query<SeenWorker>({
    name: "look_at_workers",
    text: `select worker.id, ${SIGN} as sign, ${IS_OF_SERVER} as "isOfServer",
        exists (select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
          and database = (select oid from pg_database where datname = current_database())
          and ((classid::bigint << 32) | objid::bigint) = worker.lock_key) as "hasLock"
      from worker order by worker.id`,
  });
}

/**
 * Takes over from dead workers, unless they had a heartbeat since the poll: increments their runs' epochs, so that their late writes are
 * refused, and frees their chores. Returns the accounts of the runs, once per run, in the order of their triggers. Workers lost together
 * with the database server don't count against their runs.
 */
export async function takeOverDeadWorkers(
  db: Database,
  seen: readonly Pick<SeenWorker, "id" | "sign">[],
): Promise<readonly string[]> {
  return await db.transaction(async (tx) => {
    const dead = await tx.query<{ id: string; poolIds: string[] }>(
      `select worker.id, worker.pool_ids as "poolIds" from worker
         join unnest($1::text[], $2::text[]) as seen (id, sign) on seen.id = worker.id and seen.sign = ${SIGN}
       for update of worker skip locked`,
      [seen.map(({ id }) => id), seen.map(({ sign }) => sign)],
    );
    if (dead.length === 0) return [];
    await failpoint("worker.before_take_over");
    const ids = dead.map((worker) => worker.id);
    // In the order of the batches that write under leases, to avoid deadlocks.
    const runs = await tx.query<{ id: string; accountId: string }>(
      `with freed as (
         update run set lease_owner = null, lease_epoch = lease_epoch + 1,
           lost_leases = lost_leases + (${IS_OF_SERVER})::int
         from worker where worker.id = run.lease_owner
           and run.id in (select id from run where ${LEASED} and lease_owner = any($1) order by id for no key update)
         returning run.id, run.account_id
       ) select id, account_id as "accountId" from freed order by id`,
      [ids],
    );
    await tx.query(`delete from live_picture where run_id = any($1)`, [runs.map(({ id }) => id)]);
    await tx.query(`select graphile_worker.force_unlock_workers($1::text[])`, [
      dead.flatMap((worker) => worker.poolIds),
    ]);
    await tx.query(`delete from worker where id = any($1)`, [ids]);
    return runs.map(({ accountId }) => accountId);
  });
}

/**
 * Frees a run that could not be handed back because the database was unreachable: nothing else would find it. In the order of all who lock
 * several runs, to avoid deadlocks.
 */
export async function deleteWorker(db: Database, workerId: string): Promise<void> {
  await db.query(
    `with freed as (update run set lease_owner = null, lease_epoch = lease_epoch + 1
       where id in (select id from run where ${LEASED} and lease_owner = $1 order by id for no key update))
     delete from worker where id = $1`,
    [workerId],
  );
}

/** Frees all chores of these pools. A chore in progress is then done twice, which is harmless. */
export async function freeJobs(db: Database, poolIds: readonly string[]): Promise<void> {
  await db.query(`select graphile_worker.force_unlock_workers($1::text[])`, [poolIds]);
}

/** A pool's id is in its worker's row within this, or its worker is lost. */
const UNKNOWN_POOL_MS = 30_000;

/** Frees chores that a pool of no worker holds: it was lost before its id was written down. The times are those of the jobs' own table. */
export async function freeOrphanedJobs(db: Database): Promise<void> {
  const pools = await db.query<{ id: string }>({
    name: "list_pools_of_nobody",
    text: `select distinct locked_by as id from graphile_worker.jobs where locked_at < now() - $1 * interval '1 ms'
      and not exists (select from worker where jobs.locked_by = any(worker.pool_ids))`,
    values: [UNKNOWN_POOL_MS],
  });
  if (pools.length > 0)
    await freeJobs(
      db,
      pools.map(({ id }) => id),
    );
}

type RunToStop = "cancelled" | "lease_lost" | "credential_deleted";

/** The runs that a worker must stop, with the reason: cancelled, taken over, or a credential was deleted. */
export async function listRunsToStop(
  db: Database,
  workerId: string,
  runIds: readonly string[],
): Promise<readonly { readonly runId: string; readonly reason: RunToStop }[]> {
  return await db.query<{ runId: string; reason: RunToStop }>(
    `select run.id as "runId",
       case when run.status = 'cancelled' then 'cancelled'
         when run.lease_owner is distinct from $1 then 'lease_lost' else 'credential_deleted' end as reason
     from run where run.id = any($2) and (run.lease_owner is distinct from $1
       or exists (select 1 from run_credential used where used.run_id = run.id
            and not exists (select 1 from credential where credential.id = used.credential_id)))`,
    [workerId, runIds],
  );
}

/** A lease of a worker's row. */
export interface HeldLease {
  readonly runId: string;
  readonly epoch: number;
}

export async function listLeases(db: Database, workerId: string): Promise<readonly HeldLease[]> {
  return await db.query<HeldLease>(
    `select id as "runId", lease_epoch as epoch from run where ${LEASED} and lease_owner = $1`,
    [workerId],
  );
}

/** Frees runs that are leased to this worker but not executed by it: the database was unreachable when they ended. */
export async function releaseOrphans(
  db: Database,
  workerId: string,
  orphans: readonly HeldLease[],
): Promise<number> {
  if (orphans.length === 0) return 0;
  const rows = await db.query(
    `update run set lease_owner = null, lease_epoch = lease_epoch + 1
     where id in (select run.id from run join unnest($2::text[], $3::int[]) as orphan (run_id, epoch)
         on run.id = orphan.run_id and run.lease_epoch = orphan.epoch
       where ${LEASED} and lease_owner = $1 order by run.id for no key update of run)
     returning 1`,
    [workerId, orphans.map(({ runId }) => runId), orphans.map(({ epoch }) => epoch)],
  );
  return rows.length;
}
