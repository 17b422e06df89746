import type { Database } from "#db/connection/pool.ts";
import { CLOCK_AHEAD } from "#db/test-clock.ts";
import type { FireOutcome, MissedRule, OverlapRule, PauseReason } from "#domain/schedule.ts";

/** What a caller says of a schedule. */
export interface ScheduleTerms {
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: MissedRule;
  readonly overlap: OverlapRule;
  /** A duration, such as `10m`. */
  readonly jitter: string;
  /** Canonical JSON. */
  readonly trigger: Buffer;
}

export interface Schedule extends ScheduleTerms {
  readonly id: string;
  readonly accountId: string;
  readonly key: string;
  readonly blueprintKey: string;
  readonly nextAt: Date | null;
  readonly queuedAt: Date | null;
  readonly pausedReason: PauseReason | null;
  readonly pausedDetail: string | null;
  /** Its Blueprint's document has it, which alone changes it. */
  readonly isFromDocument: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A schedule for the API. */
export interface ShownSchedule extends Schedule {
  /** Of its credentials, one is locked after rejected logins: its times are left out until then. */
  readonly lockedUntil: Date | null;
  readonly lastDueAt: Date | null;
  readonly lastOutcome: FireOutcome | null;
  readonly lastRunId: string | null;
}

const COLUMNS = `schedule.id, schedule.account_id as "accountId", schedule.key, blueprint.key as "blueprintKey", schedule.cron,
  schedule.time_zone as "timeZone", schedule.missed, schedule.overlap, schedule.jitter, schedule.trigger, schedule.next_at as "nextAt",
  schedule.queued_at as "queuedAt", schedule.paused_reason as "pausedReason", schedule.paused_detail as "pausedDetail",
  schedule.is_from_document as "isFromDocument", schedule.created_at as "createdAt", schedule.updated_at as "updatedAt"`;

export const LOCKED_UNTIL = `(select max(login_locked_until) from schedule_credential used
  join credential on credential.id = used.credential_id
  where used.schedule_id = schedule.id and login_locked_until > app_now())`;

export async function findSchedule(
  db: Database,
  accountId: string,
  key: string,
): Promise<ShownSchedule | undefined> {
  const rows = await db.query<ShownSchedule>(
    `select ${COLUMNS}, ${LOCKED_UNTIL} as "lockedUntil", fire.due_at as "lastDueAt", fire.outcome as "lastOutcome",
       fire.run_id as "lastRunId"
     from schedule join blueprint on blueprint.id = schedule.blueprint_id
       left join lateral (
         select due_at, outcome, run_id from schedule_fire where schedule_id = schedule.id order by due_at desc limit 1
       ) fire on true
     where schedule.account_id = $1 and schedule.key = $2`,
    [accountId, key],
  );
  return rows[0];
}

/** The account's schedule of this key, locked: one change at a time. */
export async function lockSchedule(
  tx: Database,
  accountId: string,
  key: string,
): Promise<Schedule | undefined> {
  const rows = await tx.query<Schedule>(
    `select ${COLUMNS} from schedule join blueprint on blueprint.id = schedule.blueprint_id
     where schedule.account_id = $1 and schedule.key = $2 for no key update of schedule`,
    [accountId, key],
  );
  return rows[0];
}

/** A schedule by its id, locked. */
export async function lockScheduleOfId(tx: Database, id: string): Promise<Schedule | undefined> {
  const rows = await tx.query<Schedule>(
    `select ${COLUMNS} from schedule join blueprint on blueprint.id = schedule.blueprint_id
     where schedule.id = $1 for no key update of schedule`,
    [id],
  );
  return rows[0];
}

/** Until when a credential of it does not log in, after rejected logins; null: none is locked. */
export async function findLockedUntil(db: Database, id: string): Promise<Date | null> {
  const rows = await db.query<{ lockedUntil: Date | null }>(
    `select ${LOCKED_UNTIL} as "lockedUntil" from schedule where id = $1`,
    [id],
  );
  return rows[0]?.lockedUntil ?? null;
}

/** Those of a Blueprint's document, by their key. */
export async function listDocumentSchedules(
  db: Database,
  accountId: string,
  blueprintKey: string,
): Promise<readonly Schedule[]> {
  return await db.query<Schedule>(
    `select ${COLUMNS} from blueprint join schedule on schedule.blueprint_id = blueprint.id
     where blueprint.account_id = $1 and blueprint.key = $2 and is_from_document order by schedule.key`,
    [accountId, blueprintKey],
  );
}

export async function countSchedules(db: Database, accountId: string): Promise<number> {
  const rows = await db.query<{ total: number }>(
    "select count(*)::int as total from schedule where account_id = $1",
    [accountId],
  );
  return rows[0]?.total ?? 0;
}

/** Its next time, and when the run of that begins. */
export interface NextRun {
  readonly dueMs: number;
  readonly beginsAtMs: number;
}

/** False: the account has a schedule of this key already. */
export async function insertSchedule(
  tx: Database,
  schedule: ScheduleTerms & {
    readonly id: string;
    readonly accountId: string;
    readonly key: string;
    readonly blueprintId: string;
    readonly isFromDocument: boolean;
    readonly next: NextRun;
  },
): Promise<boolean> {
  const { id, accountId, key, blueprintId, isFromDocument, next } = schedule;
  const { cron, timeZone, missed, overlap, jitter, trigger } = schedule;
  const rows = await tx.query(
    `insert into schedule (id, account_id, key, blueprint_id, cron, time_zone, missed, overlap, jitter, trigger, is_from_document, next_at, look_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, to_timestamp($12::float8 / 1000),
       to_timestamp($13::float8 / 1000) - (select clock_ahead_ms * interval '1 ms' from account where account.id = $2))
     on conflict do nothing returning 1`,
    [
      id,
      accountId,
      key,
      blueprintId,
      cron,
      timeZone,
      missed,
      overlap,
      jitter,
      trigger,
      isFromDocument,
      next.dueMs,
      next.beginsAtMs,
    ],
  );
  return rows.length > 0;
}

/**
 * Replaces what was said of it, and no run waits for an earlier one any more. With a next time it is not paused any more; without one (null)
 * it stays paused.
 */
export async function updateSchedule(
  tx: Database,
  id: string,
  terms: ScheduleTerms & {
    readonly blueprintId: string;
    readonly isFromDocument: boolean;
    readonly next: NextRun | null;
  },
): Promise<void> {
  const { blueprintId, isFromDocument, cron, timeZone, missed, overlap, jitter, trigger, next } = terms;
  await tx.query(
    `update schedule set blueprint_id = $4, cron = $5, time_zone = $6, missed = $7, overlap = $8, jitter = $9, trigger = $10,
       is_from_document = $11, ${BEGIN}, queued_at = null, updated_at = app_now()
     where id = $1`,
    [
      id,
      next?.dueMs ?? null,
      next?.beginsAtMs ?? null,
      blueprintId,
      cron,
      timeZone,
      missed,
      overlap,
      jitter,
      trigger,
      isFromDocument,
    ],
  );
}

/** A paused schedule continues with its next time. */
export async function resumeSchedule(
  tx: Database,
  id: string,
  { dueMs, beginsAtMs }: NextRun,
): Promise<void> {
  await tx.query(`update schedule set ${BEGIN}, updated_at = app_now() where id = $1`, [
    id,
    dueMs,
    beginsAtMs,
  ]);
}

/** `$2`: its next time, and `$3`: when the run of that begins; null: it stays paused. */
const BEGIN = `next_at = to_timestamp($2::float8 / 1000), look_at = to_timestamp($3::float8 / 1000) - ${CLOCK_AHEAD},
  paused_reason = case when $2::float8 is null then paused_reason end,
  paused_detail = case when $2::float8 is null then paused_detail end, paused_at = case when $2::float8 is null then paused_at end`;

export async function setScheduleCredentials(
  tx: Database,
  id: string,
  credentialIds: readonly string[],
): Promise<void> {
  await tx.query("delete from schedule_credential where schedule_id = $1 and credential_id <> all($2)", [
    id,
    credentialIds,
  ]);
  await tx.query(
    "insert into schedule_credential (schedule_id, credential_id) select $1, unnest($2::text[]) on conflict do nothing",
    [id, credentialIds],
  );
}

/** With what became of its times. Its runs stay. */
export async function deleteSchedule(tx: Database, id: string): Promise<void> {
  await tx.query("delete from schedule where id = $1", [id]);
}
