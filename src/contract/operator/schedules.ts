import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { RUN_STATUSES } from "#domain/run.ts";
import {
  FIRE_OUTCOMES,
  MISSED_RULES,
  OVERLAP_RULES,
  PAUSE_REASONS,
  SCHEDULE_STATES,
} from "#domain/schedule.ts";
import { closed, conflict, missing, ofAccount, oneOf, orNull, page, paging, text, time } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Schedules");

const schedule = {
  id: text("The schedule's id (`sched_...`)."),
  account: text("The account's name."),
  key: text("Its key, unique within the account."),
  blueprint: text("The Blueprint's key."),
  cron: text("Minute, hour, day of the month, month, day of the week."),
  time_zone: text("An IANA time zone."),
  missed: oneOf(MISSED_RULES, "What becomes of times that passed while no worker was there."),
  overlap: oneOf(OVERLAP_RULES, "What becomes of a time at which an earlier run has not ended."),
  jitter: text("How long after its time a run may begin, such as `10m`; `0`: it begins at its time."),
  is_from_document: Type.Boolean({
    description: "Whether the Blueprint's document has it, which alone changes it.",
  }),
  state: oneOf(
    SCHEDULE_STATES,
    "`locked`: it has no runs until the target accepts logins with its credential again.",
  ),
  paused_reason: orNull(
    oneOf(
      PAUSE_REASONS,
      "`credential_deleted`; `blueprint_retired`; `refused`: the Blueprint refuses its trigger; `ended`: it has no time any more; `operator`.",
    ),
  ),
  paused_detail: orNull(text("Why its trigger was refused.")),
  paused_at: orNull(time("When it was paused.")),
  locked_until: orNull(time("Until when its credential is locked.")),
  next_at: orNull(time("Its next time; `null`: it is paused.")),
  last: orNull(
    closed({
      due_at: time("The time."),
      outcome: oneOf(FIRE_OUTCOMES, "What became of it. `manual`: an operator began the run."),
      run_id: orNull(text("The run.")),
    }),
  ),
  created_at: time("When it was created."),
  updated_at: time("When it last changed."),
};

const unknown = missing("schedule");

export const listSchedules = defineOperation({
  id: "listSchedules",
  method: "get",
  path: "/schedules",
  summary: "List schedules, newest first",
  description: "They have nothing of their triggers' bodies.",
  permission: "schedule.read",
  accounts: "own",
  query: closed({
    ...paging,
    account: ofAccount,
    blueprint: Type.Optional(Type.String({ maxLength: 200, description: "The Blueprint's key." })),
    state: Type.Optional(oneOf(SCHEDULE_STATES, "Only these.")),
  }),
  answer: page("Schedules", closed(schedule, { title: "Schedule" })),
});

export const readSchedule = defineOperation({
  id: "readSchedule",
  method: "get",
  path: "/schedules/{scheduleId}",
  summary: "Read a schedule, with its next times and its last runs",
  permission: "schedule.read",
  answer: closed(
    {
      ...schedule,
      credentials: Type.Array(text("The id of a credential that its trigger names (`cred_...`).")),
      next: Type.Array(time("One of its next times."), {
        description: `The next ${limits.scheduleNextTimes}; none while it is paused.`,
      }),
      runs: Type.Array(
        closed({
          id: text("The run's id."),
          due_at: time("The time that it belongs to."),
          is_manual: Type.Boolean({ description: "Whether an operator began it." }),
          status: oneOf(RUN_STATUSES, "The run's status."),
          progress_step: text("Its progress."),
          ended_at: orNull(time("When it ended.")),
        }),
        { description: `Its last ${limits.scheduleLastRuns} runs, the newest first.` },
      ),
    },
    { title: "ScheduleDetail" },
  ),
  failures: [unknown],
});

export const pauseSchedule = defineOperation({
  id: "pauseSchedule",
  method: "post",
  path: "/schedules/{scheduleId}/pause",
  summary: "Pause a schedule",
  description: "Its times have no runs until an operator resumes it. Runs that it began continue.",
  permission: "schedule.manage",
  failures: [unknown, conflict("An operator has paused it already.")],
});

export const resumeSchedule = defineOperation({
  id: "resumeSchedule",
  method: "post",
  path: "/schedules/{scheduleId}/resume",
  summary: "Resume a schedule",
  description: "Whatever paused it. Times that passed in the meantime have no run.",
  permission: "schedule.manage",
  failures: [unknown, conflict("It is not paused, or its Blueprint would still refuse its trigger.")],
});

export const runSchedule = defineOperation({
  id: "runSchedule",
  method: "post",
  path: "/schedules/{scheduleId}/run",
  summary: "Begin a run of a schedule now",
  description:
    "With its trigger, also while it is paused. Where the Blueprint writes, this requires a second factor from the last 30 minutes.",
  permission: "run.trigger",
  status: 201,
  answer: closed({ id: text("The run's id."), run_key: text("Its key, a UUID.") }, { title: "BegunRun" }),
  failures: [unknown, conflict("The Blueprint refuses its trigger, or its credential is locked.")],
});
