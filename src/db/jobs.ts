import { runMigrations } from "graphile-worker";
import { grouped } from "./group.ts";
import type { Database } from "./pool.ts";

/** The last migration of graphile-worker's version that this program has. */
export const JOBS_VERSION = 20;

/** Brings graphile-worker's own schema to its version; it minds several processes that start at once itself. */
export async function migrateJobs(db: Database): Promise<void> {
  await runMigrations({ pgPool: db.pool });
}

/** Whether graphile-worker's schema is there at its version, or a newer one. */
export async function areJobsMigrated(db: Database): Promise<boolean> {
  const [table] = await db.query<{ exists: boolean }>(
    "select to_regclass('graphile_worker.migrations') is not null as exists",
  );
  if (table?.exists !== true) return false;
  const [last] = await db.query<{ version: number | null }>(
    "select max(id) as version from graphile_worker.migrations",
  );
  return (last?.version ?? 0) >= JOBS_VERSION;
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
