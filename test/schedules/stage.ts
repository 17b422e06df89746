import type { FiringServices } from "#actions/schedules/fire-schedules.ts";
import { openLog } from "#lib/log.ts";
import { setClock } from "../clock.ts";
import { signingOf } from "../invariants.ts";
import type { Installation } from "../service.ts";

/** What a worker fires schedules with, and nobody is told. */
export const firingOf = (installation: Installation): FiringServices => ({
  db: installation.database.db,
  audit: signingOf(installation).audit,
  news: {
    announce: () => {},
    notifyStop: () => {},
    notifyRunnable: () => {},
    notifyLeft: () => {},
    subscribe: () => () => {},
  },
  log: openLog({ level: "silent", format: "json" }),
});

/** The service's time stands still at this instant. */
export async function stopClock(installation: Installation, at: string): Promise<void> {
  await setClock(installation.database.db, `timestamptz '${at}'`);
}

export interface Noted {
  readonly at: string;
  readonly outcome: string;
}

/** What became of a schedule's times, as `MM-DDTHH:MM outcome`. */
export async function firesOf(installation: Installation, key: string): Promise<readonly string[]> {
  const rows = await installation.database.db.query<Noted>(
    `select to_char(due_at at time zone 'UTC', 'MM-DD"T"HH24:MI') as at, outcome
     from schedule_fire join schedule on schedule.id = schedule_id where schedule.key = $1 order by due_at`,
    [key],
  );
  return rows.map(({ at, outcome }) => `${at} ${outcome}`);
}

/** All runs end, as if workers had executed them. */
export async function endRuns(installation: Installation): Promise<void> {
  await installation.database.db.query(
    `update run set status = 'failed', progress_step = 'failed', error_kind = 'internal', ended_at = greatest(app_now(), created_at)
     where ended_at is null`,
  );
}
