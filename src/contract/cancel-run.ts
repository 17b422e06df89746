import { runStatus, running } from "./blueprint-runs.ts";
import { errorExample, idempotencyConflict, invalidKey, notAuthorised, notFound } from "./failures.ts";
import { json, type Operation } from "./operation.ts";
import { idempotencyKey, runId } from "./parameters.ts";

export const cancelRun: Operation = {
  id: "cancelRun",
  method: "post",
  path: "/blueprint-runs/{runId}/cancel",
  tag: "Runs",
  summary: "Cancel a run",
  description:
    "Ends a run that is `queued` or `running`: it is `cancelled` when this answers, and stays so. Work under way is stopped; a request that was already sent to the target system may still be carried out there. A cancelled run has no results. It has no body: what is sent as one is not looked at.",
  parameters: [idempotencyKey, runId],
  answers: [
    {
      status: 200,
      description: "The run is cancelled: its status projection.",
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
    notFound("Run", "There is no such run in the account of the key."),
    {
      ...idempotencyConflict,
      description: `The run is terminal already (no detail). Or: ${idempotencyConflict.description}`,
      examples: {
        terminal: errorExample("conflict", "The run is completed already; it can't be cancelled any more."),
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
