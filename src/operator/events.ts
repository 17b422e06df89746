import { withTestAccounts } from "#actions/operators/account-limit.ts";
import { holderOf } from "#actions/operators/operator-caller.ts";
import type { OperatorEvent } from "#actions/operators/watch-changes.ts";
import type * as contract from "#contract/operator/events.ts";
import type { Handler } from "./context.ts";

/** How long a client waits before it connects again after its stream was cut. */
const RETRY_MS = 2_000;

export const getEvents: Handler<typeof contract.watchChanges> = async ({
  services,
  caller,
  limit,
  reply,
}) => {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  if (reply.raw.destroyed) gone.abort();
  // A browser can't send the header of test mode here. What is told is what changed, not what it is.
  const told = limit && (await withTestAccounts(services.db, limit));
  return writeEvents(services.operatorWatch.watch(holderOf(caller), told, gone.signal));
};

async function* writeEvents(events: AsyncIterable<OperatorEvent>): AsyncIterable<string> {
  // Sent immediately, so that the client knows that it is connected.
  yield `retry: ${RETRY_MS}\n\n`;
  for await (const event of events) yield writeEvent(event);
}

function writeEvent(event: OperatorEvent): string {
  if (event.kind === "alive") return ": alive\n\n";
  if (event.kind === "stale") return "event: stale\ndata: {}\n\n";
  const data = {
    runs: event.runs.map(({ id, status, progressStep }) => ({ id, status, progress_step: progressStep })),
    reviews: event.reviews.map(({ id, runId, status }) => ({ id, run_id: runId, status })),
  };
  return `event: changes\ndata: ${JSON.stringify(data)}\n\n`;
}
