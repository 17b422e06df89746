import { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { findVisibleRun } from "#actions/runs/read-run.ts";
import type { RunEvent } from "#actions/runs/watch-runs.ts";
import { isTerminal, projectRun } from "#domain/run.ts";
import { enter } from "./enter.ts";
import { pathParameter, untilGone, type Handler } from "./request.ts";

/** How long a client waits before it connects again after its stream was cut. */
const RETRY_MS = 2_000;
/** The maximum that is buffered for a slow reader; of later changes only the newest is sent. */
const AHEAD_BYTES = 1_024;

/** docs/api.md#events: the run's status as Server-Sent Events. */
export const getRunEvents: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "polls", scope: "runs" });
  const run = await findVisibleRun(services, caller, pathParameter(request, "runId"));
  const seen = readLastEventId(request, run.sequence);
  // HTML, Server-sent events: 204 tells a client not to reconnect.
  if (isTerminal(run.status) && seen === run.sequence) return reply.code(204).send();
  const events = services.runWatch.watch(
    run,
    { keyId: caller.keyId, accountId: caller.account.id },
    seen,
    untilGone(reply),
  );
  return reply
    .type("text/event-stream; charset=utf-8")
    .header("X-Accel-Buffering", "no")
    .send(Readable.from(writeEvents(events), { objectMode: false, highWaterMark: AHEAD_BYTES }));
};

/**
 * The id of the last event that the client has seen; 0 when it has seen none. It is never refused: the value is
 * the client's memory, and an id that no event of this run has had is ignored.
 */
function readLastEventId(request: FastifyRequest, newest: number): number {
  const sent = request.raw.headersDistinct["last-event-id"] ?? [];
  const id = sent.length === 1 && /^[1-9]\d{0,9}$/.test(sent[0] ?? "") ? Number(sent[0]) : 0;
  return id <= newest ? id : 0;
}

async function* writeEvents(events: AsyncIterable<RunEvent>): AsyncIterable<string> {
  // Sent immediately, so that the client knows that it is connected even if it has already received the current state.
  yield `retry: ${RETRY_MS}\n\n`;
  for await (const event of events) {
    yield event === "unchanged"
      ? ": unchanged\n\n"
      : `event: status\nid: ${event.sequence}\ndata: ${JSON.stringify(projectRun(event))}\n\n`;
  }
}
