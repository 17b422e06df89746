import type { Lease } from "#db/runs/lease.ts";
import { takeRetry } from "#db/runs/retry-budget.ts";
import { findReviewOfNode } from "#db/runs/reviews.ts";
import {
  failStep,
  findStepSource,
  finishStep,
  noteStep,
  saveStepObject,
  saveStepSource,
  startStep,
} from "#db/runs/run-steps.ts";
import { storeIteration, listTurns, noteTurns } from "#db/runs/run-turns.ts";
import { beginWrite, endWrite, listWrites } from "#db/runs/run-writes.ts";
import { moveStep, type ClaimedRun } from "#db/runs/runs.ts";
import { askAgainOf } from "./waiting/ask-again.ts";
import { retryWhileLocked } from "./waiting/retry-while-locked.ts";
import { reviewRecords } from "./review-gate.ts";
import type { RunClock } from "./waiting/run-clock.ts";
import type { RunJournal } from "./run-context.ts";
import type { EngineServices } from "./services.ts";
import type { Tallies } from "./tallies.ts";
import { slotTaker } from "./waiting/take-slot.ts";

/** The journal of a run in the service: every write checks the run's lease. */
export function databaseJournal(
  {
    db,
    news,
    fence,
    paces,
    clock,
    liveViews,
  }: Pick<EngineServices, "db" | "news" | "fence" | "paces" | "clock" | "liveViews">,
  run: Pick<ClaimedRun, "id" | "accountId" | "blueprintId" | "line" | "lostLeases" | "epoch">,
  lease: Lease,
  runClock: RunClock,
  tallies: Tallies,
): RunJournal {
  const { accountId } = run;
  return {
    moveStep: async (step) => {
      const isOurs = await retryWhileLocked(async () => await moveStep(db, { lease, step }));
      if (isOurs) news.announce([run.id]);
      return isOurs;
    },
    startStep: async (nodeId) =>
      await retryWhileLocked(async () => await startStep(db, { lease, accountId, nodeId })),
    finishStep: async (step) => {
      const finished = { ...step, lease, accountId, tally: tallies.take(), hasLost: run.lostLeases > 0 };
      return await retryWhileLocked(async () => await finishStep(db, finished));
    },
    failStep: async (nodeId, detail, tookMs, log) => {
      const failed = { lease, accountId, nodeId, detail, tookMs, log, tally: tallies.take() };
      await retryWhileLocked(async () => await failStep(db, failed));
    },
    noteStep: async (nodeId, log) => {
      await retryWhileLocked(async () => await noteStep(db, lease, nodeId, log));
    },
    findSource: async (nodeId) => await findStepSource(db, run.id, nodeId),
    saveSource: async (nodeId, blob) => {
      const source = { accountId, nodeId, blob, tally: tallies.take() };
      return await retryWhileLocked(async () => await saveStepSource(db, lease, source));
    },
    savePicture: async (blob) =>
      await retryWhileLocked(async () => await saveStepObject(db, lease, { accountId, blob })),
    whileShown: async (browser, work) => await liveViews.during(lease, browser, work),
    listWrites: async (nodeId, first, count) => await listWrites(db, run.id, nodeId, first, count),
    // The journal is empty if no worker has executed the run before.
    listTurns: async (nodeIds, first, count) =>
      run.epoch === 1 ? [] : await listTurns(db, run.id, nodeIds, first, count),
    storeIteration: async (turn) =>
      await retryWhileLocked(async () => await storeIteration(db, lease, accountId, turn)),
    noteTurns: async (nodeId, total) =>
      await retryWhileLocked(async () => await noteTurns(db, lease, nodeId, total)),
    mayWrite: () => fence.check(lease),
    beginWrite: async (nodeId, ordinal) =>
      await retryWhileLocked(async () => await beginWrite(db, lease, { accountId, nodeId, ordinal })),
    endWrite: async (write) => await retryWhileLocked(async () => await endWrite(db, lease, write)),
    standStill: async (wait) => await runClock.standStill(wait),
    ...slotTaker({ db, news, paces, clock }, run, lease, runClock),
    askAgain: askAgainOf({ db, clock }, run, lease, runClock),
    takeRetry: async (retriesMax) =>
      await retryWhileLocked(async () => await takeRetry(db, lease, retriesMax)),
    isReviewAsked: async (nodeId) => (await findReviewOfNode(db, run.id, nodeId)) !== undefined,
    review: async (context, planned, records, ask) => await reviewRecords(db, context, planned, records, ask),
  };
}
