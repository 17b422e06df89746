import type { Database } from "#db/connection/pool.ts";
import { eventually } from "../eventually.ts";

/** Makes the database note every state that a run takes: what polling over HTTP would miss between two polls. */
export async function recordHistory(db: Database): Promise<void> {
  await db.query(
    `create table run_history (at bigint generated always as identity, run_id text not null, state text not null)`,
  );
  await db.query(`create function note_run_state() returns trigger language plpgsql as $$
    begin
      if tg_op = 'INSERT' or (old.status, old.progress_step) is distinct from (new.status, new.progress_step) then
        insert into run_history (run_id, state) values (new.id, new.status || '/' || new.progress_step);
      end if;
      return null;
    end $$`);
  await db.query(
    `create trigger note_run_state after insert or update on run for each row execute function note_run_state()`,
  );
}

/** Every `status/progress_step` of a run, in order. */
export async function historyOf(db: Database, runId: string): Promise<readonly string[]> {
  const rows = await db.query<{ state: string }>(
    `select state from run_history where run_id = $1 order by at`,
    [runId],
  );
  return rows.map((row) => row.state);
}

/** The worker's housekeeping as a job at once: its schedule is every ten minutes. */
export async function runHousekeeping(db: Database): Promise<void> {
  const [job] = await db.query<{ id: string }>(
    `select id::text from graphile_worker.add_job('housekeeping', job_key => 'test-housekeeping')`,
  );
  await eventually("housekeeping", async () => {
    const left = await db.query(`select 1 from graphile_worker.jobs where id = $1`, [job?.id]);
    return left.length === 0 ? true : undefined;
  });
}
