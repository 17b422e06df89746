import { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { authorizeAccount } from "#actions/keys/authenticate.ts";
import type { StreamedEvent } from "#actions/webhooks/watch-events.ts";
import { enter } from "./enter.ts";
import { untilGone, type Handler } from "./request.ts";

/** How long a client waits before it connects again after its stream was cut. */
const RETRY_MS = 2_000;
/** The maximum that is buffered for a slow reader. */
const AHEAD_BYTES = 16_384;

/** docs/api.md#events: the account's events as Server-Sent Events, each with the body that its webhook has. */
export const getEvents: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "polls", scope: "events" });
  authorizeAccount(caller);
  const holder = { keyId: caller.keyId, accountId: caller.account.id };
  const events = await services.eventWatch.watch(holder, readLastEventId(request), untilGone(reply));
  return reply
    .type("text/event-stream; charset=utf-8")
    .header("X-Accel-Buffering", "no")
    .send(Readable.from(writeEvents(events), { objectMode: false, highWaterMark: AHEAD_BYTES }));
};

/** The id of the last event that the client has seen; null: none. It is never refused: the value is the client's memory. */
function readLastEventId(request: FastifyRequest): string | null {
  const [id = "", ...more] = request.raw.headersDistinct["last-event-id"] ?? [];
  return more.length === 0 && /^msg_[0-9a-f]{32}$/.test(id) ? id : null;
}

async function* writeEvents(events: AsyncIterable<StreamedEvent>): AsyncIterable<string> {
  // Sent immediately, so that the client knows that it is connected.
  yield `retry: ${RETRY_MS}\n\n`;
  for await (const event of events)
    yield event === "unchanged"
      ? ": unchanged\n\n"
      : `event: ${event.type}\nid: ${event.id}\ndata: ${event.body}\n\n`;
}
