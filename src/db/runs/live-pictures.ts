import { leaseValues, RUN_HELD, type Lease } from "./lease.ts";
import type { Database } from "#db/connection/pool.ts";

/** Only the page of a run that a worker executes is shown, whatever is left of another one. */
const IS_EXECUTED = "run.status = 'running' and run.lease_owner is not null";

/** What a picture was taken of, and when. */
export interface LivePicture {
  readonly step: string;
  readonly takenAt: Date;
  readonly ageSeconds: number;
}

/**
 * Notes that somebody watches the run for `watchedMs` from now on, and returns its last picture; null: there is none. A run that no
 * worker executes is not watched. The row is not written again while more than half of the time is left.
 */
export async function watchRun(db: Database, runId: string, watchedMs: number): Promise<LivePicture | null> {
  const [found] = await db.query<LivePicture | { readonly step: null }>({
    name: "watch_run",
    text: `with watched as (
        insert into live_picture (run_id, watched_until)
        select id, app_now() + $2::bigint * interval '1 ms' from run where id = $1 and ${IS_EXECUTED}
        on conflict (run_id) do update set watched_until = excluded.watched_until
          where live_picture.watched_until < app_now() + $2::bigint * interval '0.5 ms'
      )
      select step, taken_at as "takenAt", greatest(floor(extract(epoch from app_now() - taken_at)), 0)::int as "ageSeconds"
      from live_picture join run on run.id = run_id where run_id = $1 and ${IS_EXECUTED}`,
    values: [runId, watchedMs],
  });
  return found === undefined || found.step === null ? null : found;
}

/** The last picture of the run's page, as a PNG; null: there is none. */
export async function readLivePicture(db: Database, runId: string): Promise<Buffer | null> {
  const rows = await db.query<{ png: Buffer | null }>(
    `select png from live_picture join run on run.id = run_id where run_id = $1 and ${IS_EXECUTED}`,
    [runId],
  );
  return rows[0]?.png ?? null;
}

/** Which of these runs somebody watches. */
export async function listWatchedRuns(db: Database, runIds: readonly string[]): Promise<readonly string[]> {
  const rows = await db.query<{ runId: string }>({
    name: "list_watched_runs",
    text: `select run_id as "runId" from live_picture where run_id = any($1) and watched_until > app_now()`,
    values: [runIds],
  });
  return rows.map(({ runId }) => runId);
}

/** Replaces the picture of a run that is watched. Nothing is written if the lease is lost. */
export async function saveLivePicture(db: Database, held: Lease, step: string, png: Buffer): Promise<void> {
  await db.query({
    name: "save_live_picture",
    text: `update live_picture set step = $4, png = $5, taken_at = app_now()
      where run_id = $1 and watched_until > app_now() and ${RUN_HELD}`,
    values: [...leaseValues(held), step, png],
  });
}

/** Removes the run's picture. Who still watches asks again. */
export async function deleteLivePicture(db: Database, runId: string): Promise<void> {
  await db.query({
    name: "delete_live_picture",
    text: "delete from live_picture where run_id = $1",
    values: [runId],
  });
}

/** Part of the worker's housekeeping: removes the rows of runs that nobody watches any more. */
export async function deleteUnwatched(db: Database): Promise<void> {
  await db.query("delete from live_picture where watched_until < app_now()");
}
