import type { Database } from "#db/connection/pool.ts";
import { LOCKED_UNTIL } from "#db/schedules/schedules.ts";
import type { PageRequest } from "#domain/page-cursor.ts";
import type { RunStatus } from "#domain/run.ts";
import type { FireOutcome, MissedRule, OverlapRule, PauseReason, ScheduleState } from "#domain/schedule.ts";

/** A schedule for operators. */
export interface SeenSchedule {
  readonly id: string;
  readonly account: string;
  readonly key: string;
  readonly blueprint: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: MissedRule;
  readonly overlap: OverlapRule;
  readonly jitter: string;
  readonly isFromDocument: boolean;
  readonly nextAt: Date | null;
  readonly pausedReason: PauseReason | null;
  readonly pausedDetail: string | null;
  readonly pausedAt: Date | null;
  readonly lockedUntil: Date | null;
  readonly lastDueAt: Date | null;
  readonly lastOutcome: FireOutcome | null;
  readonly lastRunId: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

const SEEN = `schedule.id, account.slug as account, schedule.key, blueprint.key as blueprint, schedule.cron,
  schedule.time_zone as "timeZone", schedule.missed, schedule.overlap, schedule.jitter, schedule.is_from_document as "isFromDocument",
  schedule.next_at as "nextAt", schedule.paused_reason as "pausedReason", schedule.paused_detail as "pausedDetail",
  schedule.paused_at as "pausedAt", schedule.created_at as "createdAt", schedule.updated_at as "updatedAt",
  ${LOCKED_UNTIL} as "lockedUntil", fire.due_at as "lastDueAt", fire.outcome as "lastOutcome", fire.run_id as "lastRunId"`;

const FROM = `from schedule join account on account.id = schedule.account_id join blueprint on blueprint.id = schedule.blueprint_id
  left join lateral (
    select due_at, outcome, run_id from schedule_fire where schedule_id = schedule.id order by due_at desc limit 1
  ) fire on true`;

const IS_LOCKED = `exists (select from schedule_credential used join credential on credential.id = used.credential_id
  where used.schedule_id = schedule.id and login_locked_until > app_now())`;

/** Which schedules a list has; null: all. */
export interface ScheduleFilter {
  readonly accountIds: readonly string[] | null;
  readonly blueprint: string | null;
  readonly state: ScheduleState | null;
}

/** A page of schedules, the newest first. Their ids are in the order of time. */
export async function listSeenSchedules(
  db: Database,
  filter: ScheduleFilter,
  { after, rows }: PageRequest,
): Promise<readonly SeenSchedule[]> {
  return await db.query<SeenSchedule>(
    `select ${SEEN} ${FROM}
     where ($1::text[] is null or schedule.account_id = any($1)) and ($2::text is null or blueprint.key = $2)
       and ($3::text is null or case $3 when 'paused' then paused_reason is not null
         when 'locked' then paused_reason is null and ${IS_LOCKED} else paused_reason is null and not ${IS_LOCKED} end)
       and ($4::text is null or schedule.id < $4)
     order by schedule.id desc limit $5`,
    [filter.accountIds, filter.blueprint, filter.state, after?.id ?? null, rows],
  );
}

export interface ScheduleDetail extends SeenSchedule {
  readonly accountId: string;
  readonly credentialIds: readonly string[];
  readonly nowMs: number;
}

export async function findSeenSchedule(db: Database, id: string): Promise<ScheduleDetail | undefined> {
  const rows = await db.query<ScheduleDetail>(
    `select ${SEEN}, schedule.account_id as "accountId", (extract(epoch from app_now()) * 1000)::float8 as "nowMs",
       array(select credential_id from schedule_credential where schedule_id = schedule.id order by credential_id) as "credentialIds"
     ${FROM} where schedule.id = $1`,
    [id],
  );
  return rows[0];
}

/** A run of a schedule. */
export interface ScheduleRun {
  readonly id: string;
  readonly dueAt: Date;
  readonly isManual: boolean;
  readonly status: RunStatus;
  readonly progressStep: string;
  readonly endedAt: Date | null;
}

/** The last `limit` runs of a schedule, the newest first, among the newest `among` of its times. */
export async function listScheduleRuns(
  db: Database,
  id: string,
  { limit, among }: { readonly limit: number; readonly among: number },
): Promise<readonly ScheduleRun[]> {
  return await db.query<ScheduleRun>(
    `select run.id, fire.due_at as "dueAt", fire.outcome = 'manual' as "isManual", run.status,
       run.progress_step as "progressStep", run.ended_at as "endedAt"
     from (select due_at, outcome, run_id from schedule_fire where schedule_id = $1 order by due_at desc limit $3) fire
       join run on run.id = fire.run_id
     order by fire.due_at desc limit $2`,
    [id, limit, among],
  );
}

export async function findAccountOfSchedule(db: Database, id: string): Promise<string | undefined> {
  const rows = await db.query<{ accountId: string }>(
    `select account_id as "accountId" from schedule where id = $1`,
    [id],
  );
  return rows[0]?.accountId;
}
