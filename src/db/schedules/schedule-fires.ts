import type { Database } from "#db/connection/pool.ts";
import { CLOCK_AHEAD } from "#db/test-clock.ts";
import type { FireOutcome, MissedRule, OverlapRule, PauseReason } from "#domain/schedule.ts";

/** The schedules whose time has come, the oldest first. */
export async function listDueSchedules(db: Database, limit: number): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>({
    name: "list_due_schedules",
    text: "select id from schedule where look_at <= app_now() order by look_at limit $1",
    values: [limit],
  });
  return rows.map(({ id }) => id);
}

/** A schedule whose time has come, locked. */
export interface DueSchedule {
  readonly id: string;
  readonly accountId: string;
  readonly blueprintKey: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: MissedRule;
  readonly overlap: OverlapRule;
  readonly jitter: string;
  readonly trigger: Buffer;
  readonly nextMs: number;
  readonly queuedMs: number | null;
  readonly nowMs: number;
  /** A credential that it uses does not log in for a while, or does not exist any more. */
  readonly isLocked: boolean;
  readonly isDeleted: boolean;
}

/** Undefined: another worker has it, or it is not due any more. */
export async function lockDueSchedule(tx: Database, id: string): Promise<DueSchedule | undefined> {
  const rows = await tx.query<DueSchedule>({
    name: "lock_due_schedule",
    text: `select schedule.id, schedule.account_id as "accountId", blueprint.key as "blueprintKey", cron, time_zone as "timeZone",
        missed, overlap, jitter, trigger, (extract(epoch from next_at) * 1000)::float8 as "nextMs",
        (extract(epoch from queued_at) * 1000)::float8 as "queuedMs", (extract(epoch from app_now() + ${CLOCK_AHEAD}) * 1000)::float8 as "nowMs",
        exists (select from schedule_credential used join credential on credential.id = used.credential_id
          where used.schedule_id = schedule.id and login_locked_until > app_now()) as "isLocked",
        exists (select from schedule_credential used where used.schedule_id = schedule.id
          and not exists (select from credential where credential.id = used.credential_id)) as "isDeleted"
      from schedule join blueprint on blueprint.id = schedule.blueprint_id
      where schedule.id = $1 and look_at <= app_now() for no key update of schedule skip locked`,
    values: [id],
  });
  return rows[0];
}

/** Its runs that have not ended. */
export async function listOpenRuns(
  tx: Database,
  id: string,
): Promise<readonly { readonly id: string; readonly accountId: string }[]> {
  return await tx.query({
    name: "list_open_runs_of_schedule",
    text: `with ended as (
        delete from schedule_open_run using run
        where schedule_open_run.schedule_id = $1 and run.id = schedule_open_run.run_id and run.ended_at is not null
      )
      select run.id, run.account_id as "accountId" from schedule_open_run join run on run.id = run_id
      where schedule_open_run.schedule_id = $1 and run.ended_at is null order by run.id`,
    values: [id],
  });
}

export interface Fire {
  readonly dueMs: number;
  readonly outcome: FireOutcome;
  readonly runId: string | null;
}

/** Notes what became of times. A time that has its row already is an error: it would be executed twice. */
export async function insertFires(tx: Database, id: string, fires: readonly Fire[]): Promise<void> {
  if (fires.length === 0) return;
  await tx.query({
    name: "insert_schedule_fires",
    text: `with fired as (
        insert into schedule_fire (schedule_id, due_at, outcome, run_id)
        select $1, to_timestamp(due_ms / 1000), outcome, run_id
        from unnest($2::float8[], $3::text[], $4::text[]) as given (due_ms, outcome, run_id)
        returning run_id
      )
      insert into schedule_open_run (run_id, schedule_id) select run_id, $1 from fired where run_id is not null`,
    values: [
      id,
      fires.map(({ dueMs }) => dueMs),
      fires.map(({ outcome }) => outcome),
      fires.map(({ runId }) => runId),
    ],
  });
}

/** Notes a run that is none of its times. Its moment differs from all of them, which are whole minutes, and from that of any run before it. */
export async function insertManualFire(tx: Database, id: string, runId: string): Promise<void> {
  await tx.query(
    `with fired as (
       insert into schedule_fire (schedule_id, due_at, outcome, run_id)
       select $1, greatest(
         date_trunc('milliseconds', app_now()) + interval '1 microsecond',
         (select max(due_at) + interval '1 microsecond' from schedule_fire where schedule_id = $1 and outcome = 'manual')
       ), 'manual', $2
     )
     insert into schedule_open_run (run_id, schedule_id) values ($2, $1)`,
    [id, runId],
  );
}

/** `queuedMs`: the time of the run that waits for an earlier one. */
export async function moveSchedule(
  tx: Database,
  id: string,
  {
    nextMs,
    queuedMs,
    lookMs,
  }: { readonly nextMs: number; readonly queuedMs: number | null; readonly lookMs: number },
): Promise<void> {
  await tx.query({
    name: "move_schedule",
    text: `update schedule set next_at = to_timestamp($2::float8 / 1000), queued_at = to_timestamp($3::float8 / 1000),
        look_at = to_timestamp($4::float8 / 1000) - ${CLOCK_AHEAD}
      where id = $1`,
    values: [id, nextMs, queuedMs, lookMs],
  });
}

const PAUSE = `next_at = null, look_at = null, queued_at = null, paused_at = app_now(), updated_at = app_now()`;

export async function pauseSchedule(
  tx: Database,
  id: string,
  reason: PauseReason,
  detail: string | null,
): Promise<void> {
  await tx.query(`update schedule set ${PAUSE}, paused_reason = $2, paused_detail = $3 where id = $1`, [
    id,
    reason,
    detail,
  ]);
}

/** Pauses the schedules of these accounts that use a deleted credential; returns them, each with one of the credentials. */
export async function pauseSchedulesOf(
  tx: Database,
  credentials: readonly { readonly accountId: string; readonly id: string }[],
): Promise<readonly { readonly id: string; readonly credentialId: string }[]> {
  return await tx.query<{ id: string; credentialId: string }>({
    name: "pause_schedules_of_credentials",
    text: `update schedule set ${PAUSE}, paused_reason = 'credential_deleted'
      where id in (
        select schedule.id from schedule join schedule_credential used on used.schedule_id = schedule.id
        where used.credential_id = any($2) and schedule.account_id = any($1) and paused_reason is null
        order by schedule.id for no key update of schedule
      ) returning id, (select min(credential_id) from schedule_credential
        where schedule_id = schedule.id and credential_id = any($2)) as "credentialId"`,
    values: [credentials.map(({ accountId }) => accountId), credentials.map(({ id }) => id)],
  });
}

/** Deletes at most `limit` notes of times that are older. Returns how many. */
export async function deleteOldFires(db: Database, keptMs: number, limit: number): Promise<number> {
  const rows = await db.query(
    `delete from schedule_fire where ctid = any(array(
       select ctid from schedule_fire where fired_at < app_now() - $1::float8 * interval '1 ms' limit $2
     )) returning 1`,
    [keptMs, limit],
  );
  return rows.length;
}
