import type { FireOutcome, PauseReason, ScheduleState } from "#domain/schedule.ts";

/** Why a schedule begins no runs. */
const PAUSE_NAMES: Readonly<Record<PauseReason, string>> = {
  credential_deleted: "paused: its credential was deleted",
  blueprint_retired: "paused: its Blueprint is retired",
  refused: "paused: the Blueprint refuses its trigger",
  ended: "paused: it has no time any more",
  operator: "paused by an operator",
};

/** The name of a schedule's state, with the reason. */
export const scheduleStateName = (schedule: {
  readonly state: ScheduleState;
  readonly paused_reason: PauseReason | null;
}): string => {
  if (schedule.paused_reason !== null) return PAUSE_NAMES[schedule.paused_reason];
  return schedule.state === "locked" ? "locked: its credential's logins were rejected" : "active";
};

/** What became of a time. */
export const FIRE_OUTCOME_NAMES: Readonly<Record<FireOutcome, string>> = {
  run: "a run",
  manual: "a run that an operator began",
  missed: "no run: it was missed",
  overlap: "no run: an earlier one had not ended",
  credential_locked: "no run: its credential was locked",
  refused: "no run: the Blueprint refused its trigger",
};
