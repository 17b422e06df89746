import { limits } from "#domain/limits.ts";
import { errorExample } from "#contract/failures.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Runs");

export const watchChanges = defineOperation({
  id: "watchChanges",
  method: "get",
  path: "/events",
  summary: "Watch runs and reviews",
  description: `Server-Sent Events. \`changes\`: \`{"runs": [{"id", "status", "progress_step"}], "reviews": [{"id", "run_id", "status"}]}\`, everything that changed or was created, in any process. \`stale\`: too many changes, or some may have been missed; reload the shown data. A comment every ${limits.eventHeartbeatMs / 1000} s shows that the connection is alive. The stream ends with the session, when the service restarts, and after an hour; then reconnect and reload the shown data. Watching does not extend a session.`,
  permission: "run.read",
  accounts: "own",
  streams: "text/event-stream",
  failures: [
    {
      status: 429,
      description: `Too many streams are open: ${limits.dashboardStreamsPerSessionMax} in the session, or ${limits.dashboardStreamsMax} in the process.`,
      headers: ["Retry-After"],
      examples: {
        streams: errorExample(
          "rate_limit_exceeded",
          "Too many dashboards are open. Close one, or reload manually.",
        ),
      },
    },
  ],
});
