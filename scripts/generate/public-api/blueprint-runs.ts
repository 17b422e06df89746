import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { BUILT_IN_STEPS, RUN_ERROR, RUN_STATUSES } from "#domain/run.ts";
import { notAuthorised, notFound } from "#contract/failures.ts";
import { EXAMPLE, id, nullable, openSet, runKey, timestamp } from "#contract/fields.ts";
import { json, type Operation } from "#contract/operation.ts";
import { preferWait, runId } from "#contract/parameters.ts";

const runError = Type.Object(
  {
    code: Type.String({
      description:
        "Currently `execution_failed` for every failed run. An open set: treat an unknown code as a failure that may be retried.",
      examples: ["execution_failed"],
    }),
    message: Type.String({
      description: "One of a few fixed sentences; never contains data of the run.",
      examples: [RUN_ERROR.message],
    }),
  },
  { title: "RunError", description: "Why the run failed." },
);

/** Spec, Run status projection: exactly these nine fields, never run content. */
export const runStatus = Type.Object(
  {
    id: id("run", "The run's id."),
    run_key: runKey,
    status: openSet("The run's status. `completed`, `failed` and `cancelled` are terminal.", RUN_STATUSES),
    progress_step: openSet(
      "The step within the status; a Blueprint may define additional milestones.",
      BUILT_IN_STEPS,
    ),
    created_at: timestamp("When the run was triggered."),
    started_at: nullable(
      timestamp("", "2026-11-21T07:08:10.456Z"),
      "When `status` became `running`; `null` before that, and if the login failed.",
    ),
    ended_at: nullable(timestamp("", "2026-11-21T07:08:12.789Z"), "When the run ended; `null` before that."),
    error: Type.Union([runError, Type.Null()], {
      description: "Present only if `status` is `failed`.",
    }),
    blueprint_id: id("blueprint", "The Blueprint that the run executes."),
  },
  {
    title: "RunStatus",
    description: "The status of a run, without inputs, outputs, file URLs or raw errors.",
  },
);

export type RunStatusBody = Static<typeof runStatus>;

export const running: RunStatusBody = {
  id: EXAMPLE.run,
  run_key: EXAMPLE.runKey,
  status: "running",
  progress_step: "running",
  created_at: "2026-11-21T07:08:09.123Z",
  started_at: "2026-11-21T07:08:10.456Z",
  ended_at: null,
  error: null,
  blueprint_id: EXAMPLE.blueprint,
};

const ended = { ...running, ended_at: "2026-11-21T07:08:12.789Z" };

export const readRunStatus: Operation = {
  id: "readRunStatus",
  method: "get",
  path: "/blueprint-runs/{runId}/status",
  tag: "Runs",
  summary: "Read a run's status",
  description:
    "Poll this every 2 to 5 seconds until the status is terminal, or let the service wait for the change with `Prefer: wait=N`.",
  parameters: [runId, preferWait],
  answers: [
    {
      status: 200,
      description: "The run's status projection.",
      headers: ["Preference-Applied"],
      content: json(runStatus, {
        running,
        completed: { ...ended, status: "completed", progress_step: "completed" },
        failed: {
          ...ended,
          status: "failed",
          progress_step: "failed",
          started_at: null,
          error: RUN_ERROR,
        },
      }),
    },
  ],
  failures: [notAuthorised, notFound("Run", "The API key's account has no such run.")],
  curl: {
    curl: `curl -sS "$BASE_URL/blueprint-runs/$RUN_ID/status" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};
