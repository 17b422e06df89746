import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { errorExample, notAuthorised } from "#contract/failures.ts";
import type { Operation, Parameter } from "#contract/operation.ts";
import { WEBHOOK_EVENTS } from "./webhook-events.ts";

/** HTML, Server-sent events. The value is treated as an arbitrary string, because the client sends it from memory. */
const lastEventId: Parameter = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description:
    "The `id` of the last event that the client has received: the stream goes on after it, from an hour ago at most. Browsers send this automatically when they reconnect. A value that is no event id is ignored.",
  schema: Type.String(),
  example: "msg_019fb2c4d5e63a1f0c9b8d7e6a5f4c3b",
};

const stream = Type.String({
  title: "AccountEventStream",
  description:
    "Events as webhooks have them: the type of each is its `type`, its `id` is the `webhook-id`, and its `data` is one line with the JSON of the webhook's body. Lines that begin with `:` are comments and must be ignored.",
});

const example = WEBHOOK_EVENTS.find(({ type }) => type === "run.completed")?.example ?? {};

export const watchEvents: Operation = {
  id: "watchEvents",
  method: "get",
  path: "/events",
  tag: "Events",
  summary: "Watch the account's events",
  description: `What webhooks tell, as Server-Sent Events: for development, and where no endpoint can be reached. The stream has what happens from now on, within about a second. An event may come twice, with the same \`id\`, and in any order.

A comment every ${limits.eventHeartbeatMs / 1000} s shows that the connection is alive. The stream ends when the service is restarted, when the API key is revoked, and after an hour. Reconnect with \`Last-Event-ID\`, as browsers do automatically. The API key must not be limited to Blueprints.`,
  parameters: [lastEventId],
  answers: [
    {
      status: 200,
      description: "The stream of events.",
      headers: ["X-Accel-Buffering"],
      content: {
        "text/event-stream": {
          schema: stream,
          examples: {
            run_completed: `event: run.completed\nid: msg_019fb2c4d5e63a1f0c9b8d7e6a5f4c3b\ndata: ${JSON.stringify(example)}\n\n: unchanged\n\n`,
          },
        },
      },
    },
  ],
  failures: [
    notAuthorised,
    {
      status: 429,
      description: `The rate limit was exceeded, or too many streams are open: ${limits.eventStreamsPerKeyMax} of the API key, ${limits.eventStreamsPerAccountMax} of the account, or ${limits.eventStreamsMax} of the process. Wait for the time in \`Retry-After\`.`,
      headers: ["Retry-After"],
      examples: {
        streams: errorExample("rate_limit_exceeded", "Too many event streams are open. Close one."),
      },
    },
  ],
  curl: {
    curl: `curl -sS -N "$BASE_URL/events" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};
