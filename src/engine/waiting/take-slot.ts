import { callNextQueued, leaveQueue } from "#db/runs/lines.ts";
import type { Lease } from "#db/runs/lease.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";
import { lineOf, SlotTooFar } from "./paces.ts";
import type { RunClock } from "./run-clock.ts";
import { RunFailure, RunQueued, RunStopped } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";
import { mayQueue } from "./join-queue.ts";

type TakeSlot = (nodeId: string, spacingMs: number, signal: AbortSignal) => Promise<void>;

/**
 * How a run waits for the throttle slots of its nodes. Before a node's first request the wait does not count towards the timeout, and if
 * it would be long, the run queues and holds nothing. Once it has begun, it goes before runs that have not, and if the slot would come
 * after its timeout, the run fails immediately.
 */
export function slotTaker(
  { db, news, paces, clock }: Pick<EngineServices, "db" | "news" | "paces" | "clock">,
  run: Pick<ClaimedRun, "id" | "accountId" | "blueprintId" | "line" | "lostLeases">,
  lease: Lease,
  runClock: RunClock,
): TakeSlot {
  const begun = new Map<string, Promise<number>>();
  const begin = async (nodeId: string, spacingMs: number, signal: AbortSignal): Promise<number> => {
    const node = nodeOf(run, nodeId);
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
  return async (nodeId, spacingMs, signal) => {
    const first = begun.get(nodeId);
    if (first === undefined) {
      const beginning = begin(nodeId, spacingMs, signal);
      begun.set(nodeId, beginning);
      await beginning;
      return;
    }
    const rank = await first;
    const withinMs = runClock.leftMs;
    try {
      await paces.take(nodeOf(run, nodeId), spacingMs, { rank, withinMs, signal });
    } catch (error) {
      if (!(error instanceof SlotTooFar)) throw error;
      throw new RunFailure(
        "timeout",
        `Node ${nodeId}: its \`throttle\` has no slot before the run's timeout.`,
      );
    }
  };
}

/** Ranks of runs that have not begun the node; runs that have begun come before them. */
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
