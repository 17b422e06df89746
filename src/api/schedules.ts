import {
  deleteSchedule,
  putSchedule,
  readSchedule,
  type ScheduleRequest,
} from "#actions/schedules/put-schedule.ts";
import { limits } from "#domain/limits.ts";
import { Problem, type ProblemDetail } from "#domain/problem.ts";
import { MISSED_RULES, OVERLAP_RULES } from "#domain/schedule.ts";
import type { JsonTree } from "#lib/json-text.ts";
import { enter } from "./enter.ts";
import { sendJson } from "./answer.ts";
import { readJsonObject, senderOf } from "./read-body.ts";
import { pathParameter, type Handler } from "./request.ts";

/** docs/schedules.md#the-api. The same request again changes nothing, so it needs no `Idempotency-Key`. */
export const putScheduleByKey: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "runs" });
  const body = await readJsonObject(request, {
    bytesMax: limits.jsonBodyBytesMax,
    sender: senderOf(caller),
  });
  const key = pathParameter(request, "scheduleKey");
  const { schedule, isNew } = await putSchedule(services, caller, key, readScheduleRequest(body));
  reply.code(isNew ? 201 : 200);
  return sendJson(reply, JSON.stringify(show(schedule)));
};

export const getSchedule: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "runs" });
  const schedule = await readSchedule(services, caller, pathParameter(request, "scheduleKey"));
  return sendJson(reply, JSON.stringify(show(schedule)));
};

export const deleteScheduleByKey: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "runs" });
  await deleteSchedule(services, caller, pathParameter(request, "scheduleKey"));
  return reply.code(204).send();
};

/** Unknown keys are refused: nothing here belongs to a Blueprint but what is in `trigger`. Throws Problem 422. */
function readScheduleRequest(body: ReadonlyMap<string, JsonTree>): ScheduleRequest {
  const details: ProblemDetail[] = [];
  const wrong = (field: string, message: string): void => {
    details.push({ message, code: "invalid_input_data", field });
  };
  const text = (field: string): string => {
    const value = body.get(field) ?? null;
    if (typeof value === "string") return value;
    wrong(field, value === null ? `\`${field}\` is required.` : `\`${field}\` must be a string.`);
    return "";
  };
  const rule = <Rule extends string>(field: string, rules: readonly Rule[], usual: Rule): Rule => {
    const value = body.get(field) ?? usual;
    const found = rules.find((each) => each === value);
    if (found === undefined) wrong(field, `\`${field}\` must be one of: ${rules.join(", ")}.`);
    return found ?? usual;
  };
  const trigger = body.get("trigger") ?? new Map<string, JsonTree>();
  if (!(trigger instanceof Map)) wrong("trigger", "`trigger` must be an object: the body of each trigger.");
  const read = {
    blueprintKey: text("blueprint_key"),
    cron: text("cron"),
    timeZone: text("time_zone"),
    missed: rule("missed", MISSED_RULES, "once"),
    overlap: rule("overlap", OVERLAP_RULES, "skip"),
    jitter: body.has("jitter") ? text("jitter") : "0",
    trigger: trigger instanceof Map ? trigger : new Map<string, JsonTree>(),
  };
  for (const field of body.keys())
    if (!KEYS.has(field)) wrong(field, `A schedule has no \`${field}\`. It has ${[...KEYS].join(", ")}.`);
  const [first] = details;
  if (first) throw new Problem("validation_error", first.message, { details });
  return read;
}

const KEYS: ReadonlySet<string> = new Set([
  "blueprint_key",
  "cron",
  "time_zone",
  "missed",
  "overlap",
  "jitter",
  "trigger",
]);

const iso = (time: Date | null): string | null => time?.toISOString() ?? null;

/** Like a run's projection it has nothing of the trigger. */
function show(schedule: Awaited<ReturnType<typeof readSchedule>>) {
  const { pausedReason, lockedUntil, lastDueAt, lastOutcome, lastRunId } = schedule;
  const reason = pausedReason ?? (lockedUntil === null ? null : "credential_locked");
  return {
    key: schedule.key,
    blueprint_key: schedule.blueprintKey,
    cron: schedule.cron,
    time_zone: schedule.timeZone,
    missed: schedule.missed,
    overlap: schedule.overlap,
    jitter: schedule.jitter,
    status: reason === null ? "active" : "paused",
    paused_reason: reason,
    paused_until: pausedReason === null ? iso(lockedUntil) : null,
    paused_detail: schedule.pausedDetail,
    next_at: iso(schedule.nextAt),
    last:
      lastDueAt === null
        ? null
        : { due_at: lastDueAt.toISOString(), outcome: lastOutcome, run_id: lastRunId },
    created_at: schedule.createdAt.toISOString(),
    updated_at: schedule.updatedAt.toISOString(),
  };
}
