import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { MISSED_RULES, OVERLAP_RULES, type MissedRule, type OverlapRule } from "./schedule.ts";

/** A schedule as a Blueprint's document has it. */
export interface DocumentSchedule {
  readonly key: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: MissedRule;
  readonly overlap: OverlapRule;
  readonly jitter: string;
  readonly trigger: JsonObject;
}

/** Reads the schedules of a Blueprint document that `apply` has checked. */
export function readSchedules(document: JsonObject): readonly DocumentSchedule[] {
  const { schedules } = document;
  if (!Array.isArray(schedules)) return [];
  return schedules.filter(isJsonObject).map((schedule) => ({
    key: textOf(schedule["key"]),
    cron: textOf(schedule["cron"]).trim(),
    timeZone: textOf(schedule["time_zone"]),
    missed: MISSED_RULES.find((rule) => rule === schedule["missed"]) ?? "once",
    overlap: OVERLAP_RULES.find((rule) => rule === schedule["overlap"]) ?? "skip",
    jitter: textOf(schedule["jitter"]) || "0",
    trigger: isJsonObject(schedule["trigger"]) ? schedule["trigger"] : {},
  }));
}

const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");
