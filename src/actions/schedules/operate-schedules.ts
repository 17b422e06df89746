import { readAccountClock } from "#db/test-clock.ts";
import { findAccountById } from "#db/accounts.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { lookUpDocument, type BlueprintVersion } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { insertManualFire, pauseSchedule } from "#db/schedules/schedule-fires.ts";
import { findLockedUntil, lockScheduleOfId, resumeSchedule, type Schedule } from "#db/schedules/schedules.ts";
import type { AuditActor, AuditEvent } from "#domain/audit.ts";
import { Problem } from "#domain/problem.ts";
import { spread } from "#domain/schedule-jitter.ts";
import { must } from "#lib/assert.ts";
import { readCron } from "#lib/cron.ts";
import type { Signing } from "#lib/signing.ts";
import { OperatorError } from "#actions/operator-error.ts";
import { checkTrigger, triggerRun } from "#actions/runs/trigger-run.ts";
import { readTriggerBody } from "./fire-schedules.ts";

/** What changes of schedules by operators need. */
export interface ScheduleServices {
  readonly db: Database;
  readonly signing: Signing;
}

/** Its times have no runs until an operator resumes it. Throws OperatorError. */
export async function pauseScheduleById(
  services: ScheduleServices,
  id: string,
  actor: AuditActor = { kind: "cli" },
): Promise<void> {
  await services.db.transaction(async (tx) => {
    const schedule = await requireSchedule(tx, id);
    if (schedule.pausedReason === "operator")
      throw new OperatorError(`The schedule ${id} is already paused by an operator.`);
    await pauseSchedule(tx, id, "operator", null);
    await audit(services, tx, schedule, actor, "schedule.pause", { reason: "operator" });
  });
}

/** Its next time has a run again; those that passed while it was paused have none. Throws OperatorError. */
export async function resumeScheduleById(
  services: ScheduleServices,
  id: string,
  actor: AuditActor = { kind: "cli" },
): Promise<void> {
  await services.db.transaction(async (tx) => {
    const schedule = await requireSchedule(tx, id);
    const { pausedReason, cron, timeZone, accountId, trigger } = schedule;
    if (pausedReason === null) throw new OperatorError(`The schedule ${id} is not paused.`);
    const { account, version } = await requireBlueprint(tx, schedule);
    await explained(
      id,
      async () => await checkTrigger(tx, { account, keyId: null }, version, readTriggerBody(trigger)),
    );
    const read = readCron(cron, timeZone);
    const dueMs = "problem" in read ? null : read.times.next(await readAccountClock(tx, accountId));
    if (dueMs === null || "problem" in read)
      throw new OperatorError(`The schedule ${id} has no time any more: change its times.`);
    await resumeSchedule(tx, id, { dueMs, beginsAtMs: spread(schedule, read.times.next)(dueMs) });
    await audit(
      services,
      tx,
      { id, accountId, blueprintKey: schedule.blueprintKey },
      actor,
      "schedule.resume",
      {
        reason: pausedReason,
      },
    );
  });
}

/** A run that was begun apart from a schedule's times. */
export interface BegunRun {
  readonly id: string;
  readonly runKey: string;
  readonly accountId: string;
}

/**
 * Begins a run now with the schedule's trigger, also while it is paused. It is one of the schedule's runs, which the rule for overlapping
 * times knows, but none of its times. `inspect` may refuse the Blueprint. Throws OperatorError, and what `inspect` throws.
 */
export async function runScheduleNow(
  services: ScheduleServices,
  id: string,
  actor: AuditActor = { kind: "cli" },
  inspect: (version: BlueprintVersion) => void = () => {},
): Promise<BegunRun> {
  return await services.db.transaction(async (tx) => {
    const schedule = await requireSchedule(tx, id);
    const { account, version } = await requireBlueprint(tx, schedule);
    inspect(version);
    const lockedUntil = await findLockedUntil(tx, id);
    if (lockedUntil !== null)
      throw new OperatorError(
        `A credential of the schedule ${id} is locked until ${lockedUntil.toISOString()}, because its logins were rejected. Unlock it first, or wait.`,
      );
    const initiator = { account, keyId: null, scheduleId: id };
    const answer = await explained(
      id,
      async () => await triggerRun(tx, initiator, version, readTriggerBody(schedule.trigger)),
    );
    const run = JSON.parse(answer.body) as { readonly id: string; readonly run_key: string };
    await insertManualFire(tx, id, run.id);
    await audit(services, tx, schedule, actor, "schedule.run", {}, run.id);
    return { id: run.id, runKey: run.run_key, accountId: account.id };
  });
}

async function requireSchedule(tx: Database, id: string): Promise<Schedule> {
  const schedule = await lockScheduleOfId(tx, id);
  if (schedule !== undefined) return schedule;
  throw unknownSchedule(id);
}

export const unknownSchedule = (id: string): OperatorError =>
  new OperatorError(
    `There is no schedule ${JSON.stringify(id)}. \`latchkey schedules list\` shows the ids.`,
    "missing",
  );

async function requireBlueprint(tx: Database, { id, accountId, blueprintKey }: Schedule) {
  const account = must(await findAccountById(tx, accountId), "the schedule's account");
  const version = must(await lookUpDocument(tx, "blueprint", accountId, blueprintKey), "its Blueprint");
  if (version.retired)
    throw new OperatorError(
      `The Blueprint ${account.slug}/${blueprintKey} of the schedule ${id} is retired. Restore it first.`,
    );
  return { account, version };
}

/** A refusal of the trigger, for operators. */
async function explained<T>(id: string, work: () => Promise<T>): Promise<T> {
  return await work().catch((error: unknown) => {
    if (!(error instanceof Problem)) throw error;
    throw new OperatorError(
      `The Blueprint refuses the trigger of the schedule ${id}: ${error.message} Change the schedule first.`,
    );
  });
}

async function audit(
  { signing }: ScheduleServices,
  tx: Database,
  { id, accountId, blueprintKey }: Pick<Schedule, "id" | "accountId" | "blueprintKey">,
  actor: AuditActor,
  action: AuditEvent["action"],
  detail: NonNullable<AuditEvent["detail"]>,
  runId?: string,
): Promise<void> {
  await recordAudit(tx, signing.audit, {
    accountId,
    actor,
    action,
    subjectId: id,
    ...(runId === undefined ? {} : { runId }),
    detail: { ...detail, blueprint: blueprintKey },
  });
}
