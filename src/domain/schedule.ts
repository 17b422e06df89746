import { limits } from "./limits.ts";

/** What becomes of times that passed while no worker was there: docs/schedules.md#missed-times. */
export const MISSED_RULES = ["skip", "once", "all"] as const;
export type MissedRule = (typeof MISSED_RULES)[number];

/** What becomes of a time at which an earlier run has not ended: docs/schedules.md#overlapping-runs. */
export const OVERLAP_RULES = ["skip", "queue", "cancel"] as const;
export type OverlapRule = (typeof OVERLAP_RULES)[number];

export const PAUSE_REASONS = [
  "credential_deleted",
  "blueprint_retired",
  "refused",
  "ended",
  "operator",
] as const;
export type PauseReason = (typeof PAUSE_REASONS)[number];

/** What became of one time of a schedule. `manual`: it is none of its times, but an operator began a run. */
export const FIRE_OUTCOMES = ["run", "manual", "missed", "overlap", "credential_locked", "refused"] as const;
export type FireOutcome = (typeof FIRE_OUTCOMES)[number];

/** Whether it begins runs. `locked`: not until one of its credentials logs in again. */
export const SCHEDULE_STATES = ["active", "locked", "paused"] as const;
export type ScheduleState = (typeof SCHEDULE_STATES)[number];

export const SCHEDULE_KEY_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$";
const SCHEDULE_KEY = new RegExp(SCHEDULE_KEY_PATTERN);
export const isScheduleKey = (text: string): boolean => SCHEDULE_KEY.test(text);

export const stateOfSchedule = (schedule: {
  readonly pausedReason: PauseReason | null;
  readonly lockedUntil: Date | null;
}): ScheduleState => {
  if (schedule.pausedReason !== null) return "paused";
  return schedule.lockedUntil === null ? "active" : "locked";
};

/** The first time after another one; null: there is none any more. */
export type NextTime = (afterMs: number) => number | null;

export interface DueTimes {
  /** To be executed, in order. */
  readonly due: readonly number[];
  /** Left out by the rule for missed times. Of very many, the latest. */
  readonly missed: readonly number[];
  /** The first time that has not come; null: there is none any more. */
  readonly nextMs: number | null;
}

/**
 * The times from `firstMs` that have begun by now (`beginsAt`), by the rule for missed ones. After a long pause the times long before are not counted: with the
 * rule `all`, at most the latest hundred are executed.
 */
export function planDueTimes(
  next: NextTime,
  { firstMs, nowMs, rule }: { readonly firstMs: number; readonly nowMs: number; readonly rule: MissedRule },
  beginsAt: (dueMs: number) => number = (dueMs) => dueMs,
): DueTimes {
  const passed: number[] = [];
  let atMs: number | null = firstMs;
  for (let looked = 0; atMs !== null && beginsAt(atMs) <= nowMs; atMs = next(atMs)) {
    passed.push(atMs);
    if (++looked === limits.scheduleTimesMax) atMs = Math.max(atMs, nowMs - limits.scheduleTimesMax * 60_000);
  }
  const latest = passed.slice(-limits.scheduleMadeUpMax);
  const count = rule === "all" ? latest.length : isLate(latest.map(beginsAt), nowMs, rule) ? 0 : 1;
  const first = Math.max(latest.length - count, 0);
  return { due: latest.slice(first), missed: latest.slice(0, first), nextMs: atMs };
}

/** `skip`: the latest time is executed unless it is late. */
const isLate = (begun: readonly number[], nowMs: number, rule: MissedRule): boolean =>
  rule === "skip" && nowMs - (begun.at(-1) ?? nowMs) > limits.scheduleLateMs;
