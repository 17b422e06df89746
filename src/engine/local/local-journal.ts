import { setTimeout as sleep } from "node:timers/promises";
import type { StoredWrite } from "#db/runs/run-writes.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import type { RecordBatches } from "#domain/record.ts";
import type { ReviewQuestion } from "#domain/review.ts";
import { RunFailure, RunParked } from "#engine/run-ended.ts";
import type { RunJournal } from "#engine/run-context.ts";
import { encodeRecords, type RecordCounts } from "#engine/outputs/spool.ts";

/** A review that the author decides. The records can be read repeatedly. */
export interface LocalReview extends ReviewQuestion {
  readonly nodeId: string;
  readonly counts: RecordCounts;
  readonly open: () => RecordBatches;
}

export interface LocalRules {
  /** Whether the records are approved unchanged. False: the run stops there. */
  approve(review: LocalReview): Promise<boolean>;
  /** Whether writes are sent. */
  readonly allowWrites: boolean;
  /** Whether a recording answers: then there is no reason to wait. */
  readonly isReplayed: boolean;
}

/** What only a run of the service records, for operators or for after a crash. */
const NOT_KEPT = {
  moveStep: async () => true,
  startStep: async () => true,
  savePicture: async () => true,
  whileShown: async (_browser, work) => await work(),
  listTurns: async () => [],
  storeIteration: async () => true,
  noteTurns: async () => {},
} satisfies Partial<RunJournal>;

/** The journal of a local run, in memory. */
export function localJournal(rules: LocalRules): RunJournal {
  const sources = new Map<string, string>();
  const writes = new Map<string, StoredWrite>();
  const nextFreeMs = new Map<string, number>();
  const askedSinceMs = new Map<string, number>();
  let retries = 0;
  const place = (nodeId: string, ordinal: number): string => JSON.stringify([nodeId, ordinal]);
  return {
    ...NOT_KEPT,
    finishStep: async () => true,
    failStep: async () => {},
    noteStep: async () => {},
    findSource: async (nodeId) => sources.get(nodeId) ?? null,
    saveSource: async (nodeId, { key }) => {
      sources.set(nodeId, key);
      return true;
    },
    listWrites: async (nodeId, first, count) =>
      Array.from({ length: count }, (_none, index) => writes.get(place(nodeId, first + index)) ?? []).flat(),
    // No other process executes it.
    mayWrite: () => {},
    beginWrite: async (nodeId, ordinal) => {
      if (!rules.allowWrites && !rules.isReplayed)
        throw new RunFailure(
          "data",
          `Node ${nodeId} would write to the target; nothing was sent. Use --allow-writes to send it.`,
        );
      writes.set(place(nodeId, ordinal), { ordinal, status: "started", epoch: 1, outcome: null });
      return true;
    },
    endWrite: async ({ nodeId, ordinal, status, outcome, epoch }) => {
      const kept = outcome === null ? null : Buffer.from(outcome, "utf8");
      writes.set(place(nodeId, ordinal), { ordinal, status, epoch, outcome: kept });
      return true;
    },
    standStill: async (wait) => await wait(),
    takeSlot: async (nodeId, spacingMs, signal) => {
      if (rules.isReplayed) return;
      const nowMs = performance.now();
      const atMs = Math.max(nextFreeMs.get(nodeId) ?? 0, nowMs);
      nextFreeMs.set(nodeId, atMs + spacingMs);
      await sleep(atMs - nowMs, undefined, { signal });
    },
    takeHostSlot: async () => {},
    askAgain: async ({ nodeId, ordinal }, { everyMs, forMs }, signal) => {
      if (rules.isReplayed) return true;
      const nowMs = performance.now();
      const sinceMs = askedSinceMs.get(place(nodeId, ordinal)) ?? nowMs;
      askedSinceMs.set(place(nodeId, ordinal), sinceMs);
      const leftMs = forMs - (nowMs - sinceMs);
      if (leftMs <= 0) return false;
      await sleep(Math.min(everyMs, leftMs), undefined, { signal });
      return true;
    },
    takeRetry: async (retriesMax) => ++retries <= retriesMax,
    isReviewAsked: async () => false,
    review: async (run, planned, records, ask) => {
      const counts: RecordCounts = { total: 0, valid: 0 };
      const reopen = await run.scratch.keep(encodeRecords(records, run.redact, counts));
      const open = (): RecordBatches => decodeRecords(reopen());
      if (!(await rules.approve({ ...(await ask()), nodeId: planned.node.id, counts, open })))
        throw new RunParked();
      return open();
    },
  };
}
