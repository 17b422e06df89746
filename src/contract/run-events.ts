import Type from "typebox";
import { limits } from "#domain/limits.ts";
import { running } from "./blueprint-runs.ts";
import { errorExample, notAuthorised, notFound } from "./failures.ts";
import type { Operation, Parameter } from "./operation.ts";
import { runId } from "./parameters.ts";

/** HTML, Server-sent events. The value is a string to us: it comes from the client's memory. */
const lastEventId: Parameter = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description:
    "The `id` of the last event that the client has seen: neither it nor an earlier one is sent again. Browsers send it by themselves when they reconnect. A value that is no id of this run's is ignored.",
  schema: Type.String(),
  example: "3",
};

const stream = Type.String({
  title: "RunEventStream",
  description:
    "Events of the type `status`; the `data` of each is one line, the JSON of the schema `RunStatus`, and its `id` rises with every change of `status` or `progress_step`. Lines that begin with `:` are comments, to be skipped.",
});

const completed = {
  ...running,
  status: "completed",
  progress_step: "completed",
  ended_at: "2026-11-21T07:08:12.789Z",
};

const event = (id: number, data: object): string =>
  `event: status\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;

export const watchRun: Operation = {
  id: "watchRun",
  method: "get",
  path: "/blueprint-runs/{runId}/events",
  tag: "Runs",
  summary: "Watch a run",
  description: `For clients that do not want to poll: the run's status as Server-Sent Events. The present state comes at once, then each new one as it happens, and the stream ends after the terminal one. States that follow each other quickly may be left out but for the last.

A comment every ${limits.eventHeartbeatMs / 1000} s shows that the connection lives. The stream may end before the run does: when the service is restarted, the API key is revoked, or an hour is over. Connect again with \`Last-Event-ID\`, as browsers do by themselves; once there is nothing more to come the answer is \`204\`, which tells them to stop.`,
  parameters: [runId, lastEventId],
  answers: [
    {
      status: 200,
      description: "The stream of events.",
      headers: ["X-Accel-Buffering"],
      content: {
        "text/event-stream": {
          schema: stream,
          examples: { running_to_completed: `${event(3, running)}: unchanged\n\n${event(4, completed)}` },
        },
      },
    },
    {
      status: 204,
      description: "The run is terminal and `Last-Event-ID` names its last event: don't connect again.",
    },
  ],
  failures: [
    notAuthorised,
    notFound("Run", "There is no such run in the account of the key."),
    {
      status: 429,
      description: `The rate limit was hit, or too many streams are open: ${limits.eventStreamsPerKeyMax} of the API key, ${limits.eventStreamsPerAccountMax} of the account, or ${limits.eventStreamsMax} of the process. Wait as long as \`Retry-After\` says, or poll the status instead.`,
      headers: ["Retry-After"],
      examples: {
        streams: errorExample(
          "rate_limit_exceeded",
          "Too many event streams are open. Close one, or poll the run's status.",
        ),
      },
    },
  ],
  curl: {
    curl: `curl -sS -N "$BASE_URL/blueprint-runs/$RUN_ID/events" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};
