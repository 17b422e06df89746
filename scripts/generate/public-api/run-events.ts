import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { running } from "./blueprint-runs.ts";
import { errorExample, notAuthorised, notFound } from "#contract/failures.ts";
import type { Operation, Parameter } from "#contract/operation.ts";
import { runId } from "#contract/parameters.ts";

/** HTML, Server-sent events. The value is treated as an arbitrary string, because the client sends it from memory. */
const lastEventId: Parameter = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description:
    "The `id` of the last event that the client has received: it and earlier ones are not sent again. Browsers send this automatically when they reconnect. A value that is not an event id of this run is ignored.",
  schema: Type.String(),
  example: "3",
};

const stream = Type.String({
  title: "RunEventStream",
  description:
    "Events of the type `status`. The `data` of each is one line with the JSON of the schema `RunStatus`; its `id` increases with every change of `status` or `progress_step`. Lines that begin with `:` are comments and must be ignored.",
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
  description: `An alternative to polling: the run's status as Server-Sent Events. The current state is sent at once, then every new one as it occurs, and the stream ends after the terminal one. If states follow each other quickly, only the last of them may be sent.

A comment every ${limits.eventHeartbeatMs / 1000} s shows that the connection is alive. The stream may end before the run does: when the service is restarted, the API key is revoked, or after an hour. Reconnect with \`Last-Event-ID\`, as browsers do automatically; if there is nothing more to send, the answer is \`204\`, which tells them to stop.`,
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
      description: "The run has ended and `Last-Event-ID` names its last event: don't reconnect.",
    },
  ],
  failures: [
    notAuthorised,
    notFound("Run", "The API key's account has no such run."),
    {
      status: 429,
      description: `The rate limit was exceeded, or too many streams are open: ${limits.eventStreamsPerKeyMax} of the API key, ${limits.eventStreamsPerAccountMax} of the account, or ${limits.eventStreamsMax} of the process. Wait for the time in \`Retry-After\`, or poll the status instead.`,
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
