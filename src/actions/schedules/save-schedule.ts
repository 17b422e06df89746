import { readAccountClock } from "#db/test-clock.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { Account } from "#db/accounts.ts";
import type { BlueprintVersion } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  countSchedules,
  insertSchedule,
  lockSchedule,
  setScheduleCredentials,
  updateSchedule,
  type NextRun,
  type Schedule,
  type ScheduleTerms,
} from "#db/schedules/schedules.ts";
import type { AuditActor } from "#domain/audit.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { spread } from "#domain/schedule-jitter.ts";
import { must } from "#lib/assert.ts";
import type { CronTimes } from "#lib/cron.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";
import { checkTrigger } from "#actions/runs/trigger-run.ts";
import { readTriggerBody } from "./fire-schedules.ts";

/** Who creates or replaces schedules: a caller of the API, or a Blueprint's document. */
export interface ScheduleWriter {
  readonly account: Account;
  readonly keyId: string | null;
  readonly actor: AuditActor;
  readonly isFromDocument: boolean;
  /** Throws what refuses the writer an existing schedule. */
  readonly authorize: (current: Schedule) => void;
}

/** A schedule as it is asked for; its times are those of its expression. */
export interface AskedSchedule extends ScheduleTerms {
  readonly key: string;
  readonly version: BlueprintVersion;
  readonly times: CronTimes;
}

/**
 * Creates or replaces the account's schedule of this key; the same one again changes nothing. One that an operator paused stays paused.
 * Returns the change; null: it was so already. Throws Problem 400, 422, and what the writer throws.
 */
export async function saveSchedule(
  tx: Database,
  audit: Signing["audit"],
  writer: ScheduleWriter,
  asked: AskedSchedule,
): Promise<"schedule.create" | "schedule.update" | null> {
  const { account, keyId } = writer;
  const body = readTriggerBody(asked.trigger);
  const credentialIds = await checkTrigger(tx, { account, keyId }, asked.version, body).catch(
    (error: unknown) => {
      throw error instanceof Problem ? inTrigger(error) : error;
    },
  );
  const { id, action } = await save(tx, writer, asked);
  if (action === null) return null;
  await setScheduleCredentials(tx, id, credentialIds);
  const { timeZone, missed, overlap, jitter } = asked;
  await recordAudit(tx, audit, {
    accountId: account.id,
    actor: writer.actor,
    action,
    subjectId: id,
    detail: { blueprint: asked.version.blueprint.key, time_zone: timeZone, missed, overlap, jitter },
  });
  return action;
}

/** A refusal of the trigger, whose fields are inside the key `trigger` here. */
function inTrigger(problem: Problem): Problem {
  const details = problem.details.map((detail) => ({ ...detail, field: `trigger.${detail.field ?? ""}` }));
  return new Problem(problem.type, problem.message, { status: 422, details });
}

interface Saved {
  readonly id: string;
  readonly action: "schedule.create" | "schedule.update" | null;
}

async function save(tx: Database, writer: ScheduleWriter, asked: AskedSchedule): Promise<Saved> {
  const accountId = writer.account.id;
  const { key, version, times, ...terms } = asked;
  const nextMs = must(times.next(await readAccountClock(tx, accountId)), "a time to come");
  const id = newId(ID_PREFIX.schedule);
  const { isFromDocument } = writer;
  const nextOf = (scheduleId: string, dueMs: number): NextRun => ({
    dueMs,
    beginsAtMs: spread({ id: scheduleId, jitter: terms.jitter }, times.next)(dueMs),
  });
  const next = nextOf(id, nextMs);
  const row = { ...terms, id, accountId, key, blueprintId: version.id, isFromDocument, next };
  if (await insertSchedule(tx, row)) {
    if ((await countSchedules(tx, accountId)) > limits.schedulesMax)
      throw new Problem("validation_error", `The account has ${limits.schedulesMax} schedules, the maximum.`);
    return { id, action: "schedule.create" };
  }
  const current = await lockSchedule(tx, accountId, key);
  // It was deleted just now.
  if (current === undefined) return await save(tx, writer, asked);
  writer.authorize(current);
  const isHeld = current.pausedReason === null || current.pausedReason === "operator";
  if (isHeld && isSame(current, writer, asked)) return { id: current.id, action: null };
  // A time that is due just now is not lost because something else changes.
  const keepsTimes =
    current.nextAt !== null && current.cron === terms.cron && current.timeZone === terms.timeZone;
  const keptMs = keepsTimes ? must(current.nextAt, "its next time").getTime() : nextMs;
  await updateSchedule(tx, current.id, {
    ...terms,
    blueprintId: version.id,
    isFromDocument,
    next: current.pausedReason === "operator" ? null : nextOf(current.id, keptMs),
  });
  return { id: current.id, action: "schedule.update" };
}

const isSame = (current: Schedule, { isFromDocument }: ScheduleWriter, asked: AskedSchedule): boolean =>
  current.blueprintKey === asked.version.blueprint.key &&
  current.isFromDocument === isFromDocument &&
  current.cron === asked.cron &&
  current.timeZone === asked.timeZone &&
  current.missed === asked.missed &&
  current.overlap === asked.overlap &&
  current.jitter === asked.jitter &&
  current.trigger.equals(asked.trigger);
