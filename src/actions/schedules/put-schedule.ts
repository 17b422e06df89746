import { recordAudit } from "#db/audit-entries.ts";
import { lookUpDocument, type BlueprintVersion } from "#db/config-documents.ts";
import {
  deleteSchedule as deleteRow,
  findSchedule,
  lockSchedule,
  type Schedule,
  type ShownSchedule,
} from "#db/schedules/schedules.ts";
import { limits } from "#domain/limits.ts";
import { invalidField, notFound, Problem } from "#domain/problem.ts";
import { isScheduleKey, type MissedRule, type OverlapRule } from "#domain/schedule.ts";
import { readJitter } from "#domain/schedule-jitter.ts";
import { must } from "#lib/assert.ts";
import { readCron, type CronTimes } from "#lib/cron.ts";
import { canonicalJsonText, type JsonTree } from "#lib/json-text.ts";
import { authorizeBlueprint } from "#actions/keys/authenticate.ts";
import type { Caller, Needs } from "#actions/services.ts";
import { saveSchedule } from "./save-schedule.ts";

/** The body of `PUT /schedules/{scheduleKey}`, its types checked. */
export interface ScheduleRequest {
  readonly blueprintKey: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: MissedRule;
  readonly overlap: OverlapRule;
  readonly jitter: string;
  readonly trigger: ReadonlyMap<string, JsonTree>;
}

/**
 * `PUT /schedules/{scheduleKey}`: creates or replaces the account's schedule of this key. The same request again changes nothing. Throws
 * Problem 403, 404, 409, 422.
 */
export async function putSchedule(
  services: Needs<"db" | "signing">,
  caller: Caller,
  key: string,
  request: ScheduleRequest,
): Promise<{ readonly schedule: ShownSchedule; readonly isNew: boolean }> {
  if (!isScheduleKey(key)) throw notFound("Schedule");
  const version = await findBlueprint(services, caller, request.blueprintKey);
  const times = readTimes(request);
  const trigger = Buffer.from(canonicalJsonText(request.trigger as JsonTree), "utf8");
  if (trigger.length > limits.scheduleTriggerBytesMax)
    throw invalidField("trigger", `\`trigger\` has more than ${limits.scheduleTriggerBytesMax} bytes.`);
  if (readJitter(request.jitter) === undefined)
    throw invalidField("jitter", "`jitter` must be a duration of at most 1d, such as 90s or 10m.");
  const { cron, timeZone, missed, overlap, jitter } = request;
  const asked = { key, version, times, cron: cron.trim(), timeZone, missed, overlap, jitter, trigger };
  const writer = {
    account: caller.account,
    keyId: caller.keyId,
    actor: { kind: "api_key", id: caller.keyId } as const,
    isFromDocument: false,
    authorize: (current: Schedule) => authorizeSchedule(caller, current),
  };
  return await services.db.transaction(async (tx) => {
    const action = await saveSchedule(tx, services.signing.audit, writer, asked);
    const schedule = must(await findSchedule(tx, caller.account.id, key), "the schedule");
    return { schedule, isNew: action === "schedule.create" };
  });
}

/** Only a document changes a schedule that it has. Throws Problem 403, 409. */
function authorizeSchedule(caller: Caller, { blueprintKey, isFromDocument }: Schedule): void {
  authorizeBlueprint(caller, blueprintKey);
  if (isFromDocument)
    throw new Problem(
      "conflict",
      "The document of the Blueprint has this schedule, which alone changes it. Choose another key.",
    );
}

async function findBlueprint(
  services: Needs<"db">,
  caller: Caller,
  blueprintKey: string,
): Promise<BlueprintVersion> {
  const version = await lookUpDocument(services.db, "blueprint", caller.account.id, blueprintKey);
  if (!version || version.retired)
    throw invalidField("blueprint_key", "`blueprint_key` names no Blueprint of this account.");
  authorizeBlueprint(caller, blueprintKey);
  return version;
}

function readTimes({ cron, timeZone }: ScheduleRequest): CronTimes {
  if (cron.length > limits.scheduleCronCharactersMax)
    throw invalidField("cron", `\`cron\` has more than ${limits.scheduleCronCharactersMax} characters.`);
  const read = readCron(cron, timeZone);
  if ("problem" in read) throw invalidField(read.wrong, `\`${read.wrong}\` ${read.problem}`);
  return read.times;
}

/** `GET /schedules/{scheduleKey}`. Throws Problem 404, then 403. */
export async function readSchedule(
  services: Needs<"db">,
  caller: Caller,
  key: string,
): Promise<ShownSchedule> {
  const schedule = isScheduleKey(key) && (await findSchedule(services.db, caller.account.id, key));
  if (!schedule) throw notFound("Schedule");
  authorizeBlueprint(caller, schedule.blueprintKey);
  return schedule;
}

/** `DELETE /schedules/{scheduleKey}`. Runs that it began continue. Throws Problem 404, then 403, 409. */
export async function deleteSchedule(
  services: Needs<"db" | "signing">,
  caller: Caller,
  key: string,
): Promise<void> {
  await services.db.transaction(async (tx) => {
    const schedule = isScheduleKey(key) && (await lockSchedule(tx, caller.account.id, key));
    if (!schedule) throw notFound("Schedule");
    authorizeSchedule(caller, schedule);
    await deleteRow(tx, schedule.id);
    await recordAudit(tx, services.signing.audit, {
      accountId: caller.account.id,
      actor: { kind: "api_key", id: caller.keyId },
      action: "schedule.delete",
      subjectId: schedule.id,
      detail: { blueprint: schedule.blueprintKey },
    });
  });
}
