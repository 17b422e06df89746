import { createHash } from "node:crypto";
import type { WriteStatus } from "#db/runs/run-writes.ts";
import type { MayLeave, OutboundRequest } from "#domain/http-exchange.ts";
import type { Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { Clock } from "#lib/clock.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { KnownWrite, NodeWrites } from "#nodes/define-node.ts";
import { RunParked, RunStopped } from "./run-ended.ts";
import type { RunContext } from "./run-context.ts";
import type { TargetSession } from "./login/target-session.ts";

/** The journaled writes of one node. */
export function nodeWrites(
  run: RunContext,
  nodeId: string,
  target: TargetSession,
  signal: AbortSignal,
): NodeWrites {
  // By ordinal: the epoch under which another lease began the write, and under which it is resolved.
  const earlier = new Map<number, number>();
  const end = async (
    ordinal: number,
    status: Exclude<WriteStatus, "started">,
    more: { readonly outcome?: string; readonly detail?: string; readonly sent?: string | null } = {},
  ): Promise<void> => {
    const epoch = earlier.get(ordinal) ?? run.lease.epoch;
    const { outcome = null, detail = null, sent = null } = more;
    const isOurs = await run.journal.endWrite({ nodeId, ordinal, epoch, status, outcome, detail, sent });
    if (!isOurs) throw new RunStopped("lease_lost");
  };
  return {
    token: (ordinal) => writeToken(run.run.id, nodeId, ordinal),
    known: async (first, count) => {
      const stored = await run.journal.listWrites(nodeId, first, count);
      for (const write of stored) earlier.set(write.ordinal, write.epoch);
      return new Map(stored.map((write) => [write.ordinal, knownWrite(write)]));
    },
    begin: async (ordinal) => {
      await failpoint("write.before_intent");
      const isOurs = await run.journal.beginWrite(nodeId, ordinal);
      if (!isOurs) throw new RunStopped("lease_lost");
      earlier.delete(ordinal);
      await failpoint("write.after_intent");
    },
    send: async (request, ordinal) => {
      let [hasLeft, isStopped] = [false, false];
      const mayLeave = (): void => {
        try {
          signal.throwIfAborted();
          run.journal.mayWrite();
          hasLeft = true;
        } catch (error) {
          isStopped = true;
          throw error;
        }
      };
      try {
        const answer = await sendToItsEnd(run.services.clock, target, request, signal, mayLeave);
        await failpoint("write.after_effect");
        return answer;
      } catch (error) {
        // Nothing was sent, so no operator has to decide. If another worker has the run by now, it checks on its own.
        if (isStopped && !hasLeft) await end(ordinal, "ruled_out");
        throw error;
      }
    },
    finish: async (ordinal, outcome) => {
      await end(ordinal, "done", { outcome: await run.redact.body(JSON.stringify(outcome)) });
      await failpoint("write.after_outcome");
    },
    refuse: async (ordinal) => await end(ordinal, "refused"),
    ruleOut: async (ordinal) => await end(ordinal, "ruled_out"),
    doubt: async (ordinal, detail, request) =>
      await end(ordinal, "in_doubt", {
        detail: run.redact.message(detail),
        sent: request && run.redact.message(describeRequest(request)).slice(0, limits.sentCharactersMax),
      }),
    askOperator: () => {
      throw new RunParked();
    },
  };
}

function knownWrite(write: { readonly status: WriteStatus; readonly outcome: Buffer | null }): KnownWrite {
  if (write.status === "done") {
    return { status: "done", outcome: JSON.parse(write.outcome?.toString("utf8") ?? "null") as Json };
  }
  return { status: write.status === "started" ? "in_doubt" : write.status };
}

/** More than is kept, so that no secret is cut before it is redacted. */
const LOOKED_AT = 8 * limits.sentCharactersMax;

/** The request's method, URL and body, without headers. */
function describeRequest({ method, url, query = [], body }: OutboundRequest): string {
  const search = new URLSearchParams(
    query.map(([name, value]): [string, string] => [name, value]),
  ).toString();
  const address = search === "" ? url : `${url}${url.includes("?") ? "&" : "?"}${search}`;
  return `${method} ${address}${typeof body === "string" && body !== "" ? `\n${body}` : ""}`.slice(
    0,
    LOOKED_AT,
  );
}

/** An idempotency key for the target: 32 hexadecimal digits, the same at every attempt of the run. */
function writeToken(runId: string, nodeId: string, ordinal: number): string {
  return createHash("sha256").update(`${runId}\n${nodeId}\n${ordinal}`).digest("hex").slice(0, 32);
}

/** How long a sent request may finish when the run is stopped: knowing its outcome is worth the seconds. */
async function sendToItsEnd(
  clock: Clock,
  target: TargetSession,
  request: OutboundRequest,
  signal: AbortSignal,
  mayLeave: MayLeave,
) {
  signal.throwIfAborted();
  const late = new AbortController();
  let callOff = (): void => {};
  const stop = (): void => {
    callOff = clock.after(limits.writeGraceMs, () => late.abort(signal.reason));
  };
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await target.send(request, late.signal, undefined, mayLeave);
  } finally {
    signal.removeEventListener("abort", stop);
    callOff();
  }
}
