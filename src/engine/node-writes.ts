import { createHash } from "node:crypto";
import type { WriteStatus } from "#db/runs/run-writes.ts";
import type { OutboundRequest } from "#domain/http-exchange.ts";
import type { Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { Clock } from "#lib/clock.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { KnownWrite, NodeWrites } from "#nodes/define-node.ts";
import { RunParked, RunStopped } from "./run-ended.ts";
import type { RunContext } from "./run-context.ts";
import type { TargetSession } from "./login/target-session.ts";

/** The journaled writes of one node, and work that is given the time to end one. */
export interface JournaledWrites extends NodeWrites {
  /** `late` aborts with the run's signal; while a write of `commit` is in progress, only after it had time to end. */
  toItsEnd<T>(work: (late: AbortSignal) => Promise<T>): Promise<T>;
}

export function nodeWrites(
  run: RunContext,
  nodeId: string,
  target: TargetSession,
  signal: AbortSignal,
): JournaledWrites {
  /** Writes of `commit` that have not ended. */
  const open = new Set<number>();
  // By ordinal: the epoch under which another lease began the write, and under which it is resolved.
  const earlier = new Map<number, number>();
  const end = async (
    ordinal: number,
    status: Exclude<WriteStatus, "started">,
    more: { readonly outcome?: string; readonly detail?: string; readonly sent?: string | null } = {},
  ): Promise<void> => {
    open.delete(ordinal);
    const epoch = earlier.get(ordinal) ?? run.lease.epoch;
    const { outcome = null, detail = null, sent = null } = more;
    const isOurs = await run.journal.endWrite({ nodeId, ordinal, epoch, status, outcome, detail, sent });
    if (!isOurs) throw new RunStopped("lease_lost");
  };
  const begin = async (ordinal: number): Promise<void> => {
    await failpoint("write.before_intent");
    const isOurs = await run.journal.beginWrite(nodeId, ordinal);
    if (!isOurs) throw new RunStopped("lease_lost");
    earlier.delete(ordinal);
    await failpoint("write.after_intent");
  };
  const ruleOut = async (ordinal: number): Promise<void> => await end(ordinal, "ruled_out");
  return {
    token: (ordinal) => writeToken(run.run.id, nodeId, ordinal),
    known: async (first, count) => {
      const stored = await run.journal.listWrites(nodeId, first, count);
      for (const write of stored) earlier.set(write.ordinal, write.epoch);
      return new Map(stored.map((write) => [write.ordinal, knownWrite(write)]));
    },
    begin,
    ...committed(run, signal, open, { begin, ruleOut }),
    send: senderOf(run, target, signal, ruleOut),
    finish: async (ordinal, outcome) => {
      await end(ordinal, "done", { outcome: await run.redact.body(JSON.stringify(outcome)) });
      await failpoint("write.after_outcome");
    },
    refuse: async (ordinal) => await end(ordinal, "refused"),
    ruleOut,
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

/** Throws when the run is stopped, or another worker may have it by now. */
function requireRun({ journal }: RunContext, signal: AbortSignal): void {
  signal.throwIfAborted();
  journal.mayWrite();
}

/** Writes that no request of `send` makes. `open`: those that have not ended. */
function committed(
  run: RunContext,
  signal: AbortSignal,
  open: Set<number>,
  { begin, ruleOut }: Pick<NodeWrites, "begin" | "ruleOut">,
): Pick<JournaledWrites, "commit" | "goOn" | "toItsEnd"> {
  return {
    commit: async (ordinal) => {
      await begin(ordinal);
      try {
        requireRun(run, signal);
      } catch (error) {
        // Nothing was done, so no operator has to decide.
        await ruleOut(ordinal);
        throw error;
      }
      open.add(ordinal);
    },
    // The run may have been stopped: what was begun is brought to its end.
    goOn: () => run.journal.mayWrite(),
    toItsEnd: async (work) => await toItsEnd(run.services.clock, signal, () => open.size === 0, work),
  };
}

function senderOf(
  run: RunContext,
  target: TargetSession,
  signal: AbortSignal,
  ruleOut: NodeWrites["ruleOut"],
): NodeWrites["send"] {
  return async (request, ordinal) => {
    let [hasLeft, isStopped] = [false, false];
    const mayLeave = (): void => {
      try {
        requireRun(run, signal);
        hasLeft = true;
      } catch (error) {
        isStopped = true;
        throw error;
      }
    };
    try {
      signal.throwIfAborted();
      const send = async (late: AbortSignal) => await target.send(request, late, undefined, mayLeave);
      const answer = await toItsEnd(run.services.clock, signal, () => false, send);
      await failpoint("write.after_effect");
      return answer;
    } catch (error) {
      // Nothing was sent, so no operator has to decide. If another worker has the run by now, it checks on its own.
      if (isStopped && !hasLeft) await ruleOut(ordinal);
      throw error;
    }
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

/** When the run is stopped, what was sent may finish for a while: knowing its outcome is worth the seconds. */
async function toItsEnd<T>(
  clock: Clock,
  signal: AbortSignal,
  mayStop: () => boolean,
  work: (late: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  let callOff = (): void => {};
  const stop = (): void => {
    if (mayStop()) late.abort(signal.reason);
    else callOff = clock.after(limits.writeGraceMs, () => late.abort(signal.reason));
  };
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await work(late.signal);
  } finally {
    signal.removeEventListener("abort", stop);
    callOff();
  }
}
