import { recordAudit } from "#db/audit-entries.ts";
import { lookUpDocument, type BlueprintVersion } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  countSchedules,
  deleteSchedule as deleteRow,
  findSchedule,
  insertSchedule,
  lockSchedule,
  readNowMs,
  setScheduleCredentials,
  updateSchedule,
  type Schedule,
  type ScheduleTerms,
  type ShownSchedule,
} from "#db/schedules/schedules.ts";
import { toTriggerBody } from "#domain/json-body.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { invalidField, notFound, Problem } from "#domain/problem.ts";
import { isScheduleKey, type MissedRule, type OverlapRule } from "#domain/schedule.ts";
import { must } from "#lib/assert.ts";
import { readCron, type CronTimes } from "#lib/cron.ts";
import { canonicalJsonText, type JsonTree } from "#lib/json-text.ts";
import { newId } from "#lib/new-id.ts";
import { authorizeBlueprint } from "#actions/keys/authenticate.ts";
import { checkTrigger } from "#actions/runs/trigger-run.ts";
import type { Caller, Needs } from "#actions/services.ts";

/** The body of `PUT /schedules/{scheduleKey}`, its types checked. */
export interface ScheduleRequest {
  readonly blueprintKey: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: MissedRule;
  readonly overlap: OverlapRule;
  readonly trigger: ReadonlyMap<string, JsonTree>;
}

/**
 * `PUT /schedules/{scheduleKey}`: creates or replaces the account's schedule of this key. The same request again changes nothing. Throws
 * Problem 403, 404, 422.
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
  const { cron, timeZone, missed, overlap } = request;
  const terms = { cron: cron.trim(), timeZone, missed, overlap, trigger };
  return await services.db.transaction(async (tx) => {
    const credentialIds = await checkTrigger(tx, caller, version, toTriggerBody(request.trigger)).catch(
      (error: unknown) => {
        throw error instanceof Problem ? inTrigger(error) : error;
      },
    );
    const saved = await save(tx, caller, key, { ...terms, version, times });
    if (saved.action !== null) {
      await setScheduleCredentials(tx, saved.id, credentialIds);
      await recordAudit(tx, services.signing.audit, {
        accountId: caller.account.id,
        actor: { kind: "api_key", id: caller.keyId },
        action: saved.action,
        subjectId: saved.id,
        detail: { blueprint: request.blueprintKey, time_zone: timeZone, missed, overlap },
      });
    }
    const schedule = must(await findSchedule(tx, caller.account.id, key), "the schedule");
    return { schedule, isNew: saved.action === "schedule.create" };
  });
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

/** A refusal of the trigger, whose fields are inside the key `trigger` here. */
function inTrigger(problem: Problem): Problem {
  const details = problem.details.map((detail) => ({ ...detail, field: `trigger.${detail.field ?? ""}` }));
  return new Problem(problem.type, problem.message, { status: 422, details });
}

interface Saved {
  readonly id: string;
  /** null: it was so already. */
  readonly action: "schedule.create" | "schedule.update" | null;
}

async function save(
  tx: Database,
  caller: Caller,
  key: string,
  asked: ScheduleTerms & { readonly version: BlueprintVersion; readonly times: CronTimes },
): Promise<Saved> {
  const accountId = caller.account.id;
  const { version, times, ...terms } = asked;
  const nextMs = must(times.next(await readNowMs(tx)), "a time to come");
  const id = newId(ID_PREFIX.schedule);
  const row = { ...terms, id, accountId, key, blueprintId: version.id, nextMs };
  if (await insertSchedule(tx, row)) {
    if ((await countSchedules(tx, accountId)) > limits.schedulesMax)
      throw new Problem("validation_error", `The account has ${limits.schedulesMax} schedules, the maximum.`);
    return { id, action: "schedule.create" };
  }
  const current = await lockSchedule(tx, accountId, key);
  // It was deleted just now.
  if (current === undefined) return await save(tx, caller, key, asked);
  authorizeBlueprint(caller, current.blueprintKey);
  if (current.pausedReason === null && isSame(current, terms, version))
    return { id: current.id, action: null };
  // A time that is due just now is not lost because something else changes.
  const keepsTimes =
    current.nextAt !== null && current.cron === terms.cron && current.timeZone === terms.timeZone;
  const keptMs = keepsTimes ? must(current.nextAt, "its next time").getTime() : nextMs;
  await updateSchedule(tx, current.id, { ...terms, blueprintId: version.id, nextMs: keptMs });
  return { id: current.id, action: "schedule.update" };
}

const isSame = (current: Schedule, terms: ScheduleTerms, version: BlueprintVersion): boolean =>
  current.blueprintKey === version.blueprint.key &&
  current.cron === terms.cron &&
  current.timeZone === terms.timeZone &&
  current.missed === terms.missed &&
  current.overlap === terms.overlap &&
  current.trigger.equals(terms.trigger);

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

/** `DELETE /schedules/{scheduleKey}`. Runs that it began continue. Throws Problem 404, then 403. */
export async function deleteSchedule(
  services: Needs<"db" | "signing">,
  caller: Caller,
  key: string,
): Promise<void> {
  await services.db.transaction(async (tx) => {
    const schedule = isScheduleKey(key) && (await lockSchedule(tx, caller.account.id, key));
    if (!schedule) throw notFound("Schedule");
    authorizeBlueprint(caller, schedule.blueprintKey);
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
