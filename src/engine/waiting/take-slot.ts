import { callNextQueued, leaveQueue } from "#db/runs/lines.ts";
import type { Lease } from "#db/runs/lease.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import { throttledHost, type ThrottledNode } from "#db/runs/throttle.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";
import { lineOf, SlotTooFar } from "./paces.ts";
import type { RunClock } from "./run-clock.ts";
import { RunFailure, RunQueued, RunStopped } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";
import { mayQueue } from "./join-queue.ts";

/** How a run takes slots: of its nodes' throttles, and of those that the account's document has for hosts. */
export interface Slots {
  readonly takeSlot: (nodeId: string, spacingMs: number, signal: AbortSignal) => Promise<void>;
  readonly takeHostSlot: (origin: string, signal: AbortSignal) => Promise<void>;
}

/**
 * How a run waits for slots. Before its first request of a throttled node, or to a throttled host, the wait does not count towards the
 * timeout, and if it would be long, the run queues and holds nothing. Once it has begun, it goes before runs that have not, and if the slot
 * would come after its timeout, the run fails immediately.
 */
export function slotTaker(
  { db, news, paces, clock }: Pick<EngineServices, "db" | "news" | "paces" | "clock">,
  run: Pick<ClaimedRun, "id" | "accountId" | "blueprintId" | "line" | "lostLeases">,
  lease: Lease,
  runClock: RunClock,
): Slots {
  const begun = new Map<string, Promise<number>>();
  const begin = async (node: ThrottledNode, spacingMs: number, signal: AbortSignal): Promise<number> => {
    const isCalled = run.line === lineOf(node);
    const beganMs = clock.now();
    const patienceMs = isCalled ? limits.calledPatienceMs : limits.slotPatienceMs;
    const withinMs = mayQueue(run) ? patienceMs : Infinity;
    // Runs that were called have waited longer than any that arrive now.
    const rank = isCalled ? CALLED : NEW;
    try {
      await runClock.standStill(async () => await paces.take(node, spacingMs, { rank, withinMs, signal }));
    } catch (error) {
      if (error instanceof SlotTooFar) throw new RunQueued(lineOf(node), clock.now() - beganMs);
      throw error;
    }
    if (isCalled) {
      const waitedMs = clock.now() - beganMs;
      if (!(await retryWhileLocked(async () => await leaveQueue(db, lease, waitedMs))))
        throw new RunStopped("lease_lost");
      news.notifyRunnable(await callNextQueued(db, [lineOf(node)]));
    }
    return paces.newRank();
  };
  const take = async (
    node: ThrottledNode,
    spacingMs: number,
    signal: AbortSignal,
    what: string,
  ): Promise<void> => {
    const line = lineOf(node);
    const first = begun.get(line);
    if (first === undefined) {
      const beginning = begin(node, spacingMs, signal);
      begun.set(line, beginning);
      await beginning;
      return;
    }
    const rank = await first;
    const withinMs = runClock.leftMs;
    try {
      await paces.take(node, spacingMs, { rank, withinMs, signal });
    } catch (error) {
      if (!(error instanceof SlotTooFar)) throw error;
      throw new RunFailure("timeout", `${what} has no slot before the run's timeout.`);
    }
  };
  return {
    takeSlot: async (nodeId, spacingMs, signal) =>
      await take(nodeOf(run, nodeId), spacingMs, signal, `Node ${nodeId}: its \`throttle\``),
    takeHostSlot: async (origin, signal) => {
      const spacingMs = await paces.spacingOfHost(run.accountId, origin);
      if (spacingMs === null) return;
      const host = throttledHost(run.accountId, origin);
      await take(host, spacingMs, signal, `The account's \`throttle\` of ${origin}`);
    },
  };
}

/** Ranks of runs that have not begun; those that have come before them. */
const CALLED = Number.MAX_SAFE_INTEGER - 1;
const NEW = Number.MAX_SAFE_INTEGER;

const nodeOf = (
  { accountId, blueprintId }: Pick<ClaimedRun, "accountId" | "blueprintId">,
  nodeId: string,
) => ({
  accountId,
  blueprintId: must(blueprintId, "the node's Blueprint"),
  nodeId,
});
