import { checkTrigger } from "#actions/runs/trigger-run.ts";
import { triggerBytes } from "#actions/schedules/trigger-bytes.ts";
import { readTriggerBody } from "#actions/schedules/fire-schedules.ts";
import { findAccountBySlug } from "#db/accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import { findSchedule } from "#db/schedules/schedules.ts";
import { readBlueprint } from "#domain/blueprint.ts";
import { suggestion } from "#domain/config-nearest.ts";
import { formatPath, quote, type ConfigFinding, type ConfigProblem } from "#domain/config-problem.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { readSchedules } from "#domain/schedule-documents.ts";
import { readCron } from "#lib/cron.ts";
import { checkUnique } from "./check-values.ts";

/** The keys of a trigger's body. */
interface TriggerKeys {
  readonly metadata: readonly string[];
  readonly inputs: readonly string[];
  readonly required: readonly string[];
}

const OF_THE_SERVICE = ["credential_id", "credential_ids", "run_name"];

/** The schedules of a Blueprint document, as far as it says itself whether they can be (docs/schedules.md#in-a-blueprints-document). */
export function checkSchedules(schedules: Json | undefined, keys: TriggerKeys): readonly ConfigFinding[] {
  if (!Array.isArray(schedules)) return [];
  const named = schedules.flatMap((each, index) =>
    isJsonObject(each) && typeof each["key"] === "string"
      ? [{ name: each["key"], path: ["schedules", index, "key"] }]
      : [],
  );
  return [
    ...checkUnique(named, (key) => `another schedule has the key ${quote(key)} already; choose another one`),
    ...schedules.flatMap((each, index) =>
      isJsonObject(each)
        ? [...checkTimes(each, index), ...checkBody(each["trigger"] ?? {}, index, keys)]
        : [],
    ),
  ];
}

function checkTimes(schedule: JsonObject, index: number): readonly ConfigFinding[] {
  const { cron, time_zone: timeZone } = schedule;
  if (typeof cron !== "string" || typeof timeZone !== "string") return [];
  if (cron.length > limits.scheduleCronCharactersMax) return [];
  const read = readCron(cron, timeZone);
  if (!("problem" in read)) return [];
  return [{ path: ["schedules", index, read.wrong], message: read.problem.replace(/\.$/, "") }];
}

function checkBody(
  trigger: Json,
  index: number,
  { metadata, inputs, required }: TriggerKeys,
): readonly ConfigFinding[] {
  if (!isJsonObject(trigger)) return [];
  const path = ["schedules", index, "trigger"] as const;
  const known = [...OF_THE_SERVICE, ...inputs, ...metadata];
  const unknown = Object.keys(trigger).filter((key) => !known.includes(key));
  const missing = required.filter((name) => (trigger[name] ?? null) === null);
  const isLarge = triggerBytes(trigger).length > limits.scheduleTriggerBytesMax;
  return [
    ...unknown.map((key) => ({
      path: [...path, key],
      at: "key" as const,
      message: `the Blueprint has no input and no metadata item ${quote(key)}${suggestion(key, known, "a trigger may have")}`,
    })),
    ...missing.map((name) => ({
      path: [...path],
      message: `the required metadata item ${quote(name)} is missing; add it`,
    })),
    ...(isLarge
      ? [{ path: [...path], message: `has more than ${limits.scheduleTriggerBytesMax} bytes` }]
      : []),
  ];
}

/** A document that was checked without the service's rows. */
interface CheckedSchedules {
  readonly kind: string;
  readonly account: string;
  readonly id: string;
  readonly document: JsonObject;
  readonly retired: boolean;
  readonly file: string;
  readonly line: number;
}

/** What only the service's rows tell: the credentials of the triggers, and the keys that the account's schedules have. */
export async function checkSchedulesHere(
  db: Database,
  steps: readonly { readonly change: string; readonly checked: CheckedSchedules }[],
): Promise<readonly ConfigProblem[]> {
  const problems: ConfigProblem[] = [];
  for (const { change, checked } of steps) {
    if (checked.kind !== "blueprint" || checked.retired || change === "unchanged") continue;
    const account = await findAccountBySlug(db, checked.account);
    if (account === undefined) continue;
    const blueprint = readBlueprint(checked.document);
    const version = { id: "", accountId: account.id, version: 0, retired: false, blueprint };
    const add = (index: number, key: string, message: string): void => {
      const path = `${formatPath(["schedules", index])}.${key}`;
      problems.push({ file: checked.file, line: checked.line, column: 1, path, message });
    };
    for (const [index, { key, trigger }] of readSchedules(checked.document).entries()) {
      const other = await findSchedule(db, account.id, key);
      if (other !== undefined && other.blueprintKey !== checked.id)
        add(
          index,
          "key",
          `the Blueprint ${quote(other.blueprintKey)} has a schedule of this key already; choose another one`,
        );
      await checkTrigger(db, { account, keyId: null }, version, readTriggerBody(triggerBytes(trigger))).catch(
        (error: unknown) => {
          if (!(error instanceof Problem)) throw error;
          for (const { field, message } of error.details)
            add(index, `trigger.${field ?? ""}`, message.replace(/\.$/, ""));
        },
      );
    }
  }
  return problems;
}
