import { runStatus, running } from "./blueprint-runs.ts";
import {
  errorExample,
  idempotencyConflict,
  invalidKey,
  notAuthorised,
  notFound,
} from "#contract/failures.ts";
import { json, type Operation } from "#contract/operation.ts";
import { idempotencyKey, runId } from "#contract/parameters.ts";

export const cancelRun: Operation = {
  id: "cancelRun",
  method: "post",
  path: "/blueprint-runs/{runId}/cancel",
  tag: "Runs",
  summary: "Cancel a run",
  description:
    "Cancels a run that is `queued` or `running`: once this returns, the run is `cancelled` and remains so. Work in progress is stopped; a request that was already sent to the target system may still take effect there. A cancelled run has no results. A request body is ignored.",
  parameters: [idempotencyKey, runId],
  answers: [
    {
      status: 200,
      description: "The status of the cancelled run.",
      headers: ["Idempotent-Replay"],
      content: json(runStatus, {
        cancelled: {
          ...running,
          status: "cancelled",
          progress_step: "cancelled",
          ended_at: "2026-11-21T07:08:12.789Z",
        },
      }),
    },
  ],
  failures: [
    notAuthorised,
    notFound("Run", "The API key's account has no such run."),
    {
      ...idempotencyConflict,
      description: `The run has already ended (no detail). Or: ${idempotencyConflict.description}`,
      examples: {
        terminal: errorExample("conflict", "The run is already completed and can't be cancelled."),
        ...idempotencyConflict.examples,
      },
    },
    invalidKey,
  ],
  curl: {
    curl: `curl -sS -X POST "$BASE_URL/blueprint-runs/$RUN_ID/cancel" \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Idempotency-Key: cancel-order-4711"`,
  },
};
