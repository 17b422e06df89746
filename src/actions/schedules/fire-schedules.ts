import { findAccountById } from "#db/accounts.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { lookUpDocument } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunChanges } from "#db/runs/run-notifier.ts";
import { cancelRun } from "#db/runs/runs.ts";
import {
  insertFires,
  listDueSchedules,
  listOpenRuns,
  lockDueSchedule,
  moveSchedule,
  pauseSchedule,
  type DueSchedule,
  type Fire,
} from "#db/schedules/schedule-fires.ts";
import { toTriggerBody } from "#domain/json-body.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import type { TriggerBody } from "#domain/trigger-routing.ts";
import { planDueTimes, type FireOutcome, type PauseReason } from "#domain/schedule.ts";
import { spread } from "#domain/schedule-jitter.ts";
import { must } from "#lib/assert.ts";
import { readCron } from "#lib/cron.ts";
import { failpoint } from "#lib/failpoint.ts";
import { parseJsonText, type JsonTree } from "#lib/json-text.ts";
import { describeError, type Log } from "#lib/log.ts";
import type { Signing } from "#lib/signing.ts";
import { triggerRun } from "#actions/runs/trigger-run.ts";

export interface FiringServices {
  readonly db: Database;
  readonly audit: Signing["audit"];
  readonly news: RunChanges;
  readonly log: Log;
}

const DUE_AT_ONCE = 500;
const AT_ONCE = 4;

/** Does what the schedules say whose time has come. Any number of workers may call it. Returns how many it looked at. */
export async function fireSchedules(services: FiringServices): Promise<number> {
  const ids = await listDueSchedules(services.db, DUE_AT_ONCE);
  const left = [...ids];
  const work = async (): Promise<void> => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      const scheduleId = id;
      // A failure leaves the schedule due: the next look repeats it. Others are not kept waiting.
      await fireSchedule(services, scheduleId).catch((error: unknown) =>
        services.log.warn(
          { scheduleId, ...describeError(error) },
          "a schedule could not be executed; retrying",
        ),
      );
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, ids.length) }, work));
  return ids.length;
}

/** Does what one schedule says, unless it is not due or another worker does it. */
export async function fireSchedule(services: FiringServices, id: string): Promise<void> {
  const fired = await services.db.transaction(async (tx) => {
    const schedule = await lockDueSchedule(tx, id);
    const done = schedule && (await fire(services, tx, schedule));
    if (done !== undefined) await failpoint("schedule.before_commit");
    return done;
  });
  if (fired === undefined) return;
  await failpoint("schedule.after_commit");
  services.news.notifyStop(fired.cancelled);
  services.news.announce(fired.cancelled);
  services.news.notifyRunnable([fired.accountId]);
}

interface Fired {
  readonly accountId: string;
  readonly cancelled: readonly string[];
}

/** Decides on each time that has come, by the rules, and notes it: in the same transaction as the runs. */
async function fire(services: FiringServices, tx: Database, schedule: DueSchedule): Promise<Fired> {
  const { id, accountId, nowMs, queuedMs, overlap } = schedule;
  const read = readCron(schedule.cron, schedule.timeZone);
  if ("problem" in read)
    return await pause(services, tx, schedule, "refused", `The schedule ${read.problem}`);
  const beginsAt = spread(schedule, read.times.next);
  const from = { firstMs: schedule.nextMs, nowMs, rule: schedule.missed };
  const { due, missed, nextMs } = planDueTimes(read.times.next, from, beginsAt);
  await insertFires(tx, id, noted(missed, "missed"));
  const open = due.length === 0 && queuedMs === null ? [] : await listOpenRuns(tx, id);
  let now = due;
  let waitingMs: number | null = null;
  if (overlap === "queue" && (open.length > 0 || queuedMs !== null)) {
    // One run waits for an earlier one; a later time takes its place.
    const waiting = [...(queuedMs === null ? [] : [queuedMs]), ...due];
    now = open.length > 0 ? [] : waiting.slice(0, 1);
    const others = waiting.slice(now.length);
    waitingMs = others.at(-1) ?? null;
    await insertFires(tx, id, noted(others.slice(0, -1), "overlap"));
  } else if (open.length > 0 && overlap === "skip") {
    await insertFires(tx, id, noted(due, "overlap"));
    now = [];
  }
  const reason = await begin(tx, schedule, now);
  if (reason !== null) return await pause(services, tx, schedule, ...reason);
  const cancelled: string[] = [];
  if (overlap === "cancel" && now.length > 0 && !schedule.isLocked)
    for (const run of open) if (await cancel(services, tx, schedule, run.id)) cancelled.push(run.id);
  if (nextMs === null) return await pause(services, tx, schedule, "ended", null);
  const queuedLookMs = waitingMs === null ? Infinity : nowMs + limits.scheduleQueuedMs;
  const lookMs = Math.min(beginsAt(nextMs), queuedLookMs);
  await moveSchedule(tx, id, { nextMs, queuedMs: waitingMs, lookMs });
  return { accountId, cancelled };
}

const noted = (times: readonly number[], outcome: Exclude<FireOutcome, "run" | "manual">): readonly Fire[] =>
  times.map((dueMs) => ({ dueMs, outcome, runId: null }));

/** Triggers the runs. Why it must pause instead; null: it need not. */
async function begin(
  tx: Database,
  schedule: DueSchedule,
  times: readonly number[],
): Promise<readonly [PauseReason, string | null] | null> {
  const { id, accountId, blueprintKey } = schedule;
  if (times.length === 0) return null;
  if (schedule.isLocked) {
    await insertFires(tx, id, noted(times, "credential_locked"));
    return null;
  }
  const account = must(await findAccountById(tx, accountId), "the schedule's account");
  const version = must(await lookUpDocument(tx, "blueprint", accountId, blueprintKey), "its Blueprint");
  const refuse = async (reason: PauseReason, detail: string | null) => {
    await insertFires(tx, id, noted(times, "refused"));
    return [reason, detail] as const;
  };
  if (schedule.isDeleted) return await refuse("credential_deleted", null);
  if (version.retired) return await refuse("blueprint_retired", null);
  const body = readTriggerBody(schedule.trigger);
  try {
    for (const dueMs of times) {
      const answer = await triggerRun(tx, { account, keyId: null, scheduleId: id }, version, body);
      const { id: runId } = JSON.parse(answer.body) as { id: string };
      await insertFires(tx, id, [{ dueMs, outcome: "run", runId }]);
    }
    return null;
  } catch (error) {
    // It is thrown before anything is written, and by the first of them if by any: they have the same body.
    if (error instanceof Problem) return await refuse("refused", error.message.slice(0, 500));
    throw error;
  }
}

/** The body of a schedule's triggers, as it is stored. */
export const readTriggerBody = (bytes: Buffer): TriggerBody =>
  toTriggerBody(
    parseJsonText(bytes.toString("utf8"), {
      depthMax: limits.jsonDepthMax,
      valuesMax: limits.jsonValuesMax,
    }) as ReadonlyMap<string, JsonTree>,
  );

async function cancel(
  services: FiringServices,
  tx: Database,
  schedule: DueSchedule,
  runId: string,
): Promise<boolean> {
  if ((await cancelRun(tx, schedule.accountId, runId)) === undefined) return false;
  await recordAudit(tx, services.audit, {
    accountId: schedule.accountId,
    actor: { kind: "service" },
    action: "run.cancel",
    subjectId: runId,
    runId,
    detail: { schedule: schedule.id },
  });
  return true;
}

async function pause(
  services: FiringServices,
  tx: Database,
  { id, accountId, blueprintKey }: DueSchedule,
  reason: PauseReason,
  detail: string | null,
): Promise<Fired> {
  await pauseSchedule(tx, id, reason, detail);
  await recordAudit(tx, services.audit, {
    accountId,
    actor: { kind: "service" },
    action: "schedule.pause",
    subjectId: id,
    detail: { reason, blueprint: blueprintKey },
  });
  return { accountId, cancelled: [] };
}
