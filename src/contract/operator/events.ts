import { limits } from "#domain/limits.ts";
import { errorExample } from "#contract/failures.ts";
import { defineOperation } from "./operation.ts";

export const watchChanges = defineOperation({
  id: "watchChanges",
  method: "get",
  path: "/events",
  tag: "Runs",
  summary: "Watch runs and reviews",
  description: `Server-Sent Events. \`changes\`: \`{"runs": [{"id", "status", "progress_step"}], "reviews": [{"id", "run_id", "status"}]}\`, what has changed or is new, of every process. \`stale\`: too much has, or something may have been missed; read what is shown again. A comment every ${limits.eventHeartbeatMs / 1000} s shows that the connection lives. The stream ends with the session, when the service is restarted, and after an hour; connect again, and read what is shown again. To watch does not keep a session alive.`,
  permission: "run.read",
  status: 200,
  streams: "text/event-stream",
  failures: [
    {
      status: 429,
      description: `Too many streams are open: ${limits.dashboardStreamsPerSessionMax} of the session, or ${limits.dashboardStreamsMax} of the process.`,
      headers: ["Retry-After"],
      examples: {
        streams: errorExample(
          "rate_limit_exceeded",
          "Too many dashboards watch. Close one, or reload now and then.",
        ),
      },
    },
  ],
});
