import type { Database } from "#db/connection/pool.ts";
import { findReviewOfNode, insertReview, listChanges, type StoredChange } from "#db/runs/reviews.ts";
import { withHandlesOf } from "#domain/handle-text.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import type { ReviewQuestion } from "#domain/review.ts";
import { assert, must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { newId } from "#lib/new-id.ts";
import { storeSource } from "./fix-source.ts";
import { recheckEdited, type Recheck } from "./recheck-edited.ts";
import { RunParked } from "./run-ended.ts";
import type { PlannedNode, RunContext } from "./run-context.ts";
import type { RecordCounts } from "./outputs/spool.ts";

/**
 * The records of a review node: stored before the review is requested, and with the reviewer's changes once it is decided. Until then
 * this throws RunParked; the transaction that parks the run writes the review's row.
 */
export async function reviewRecords(
  db: Database,
  run: RunContext,
  planned: PlannedNode,
  records: RecordBatches,
  ask: () => Promise<ReviewQuestion>,
): Promise<RecordBatches> {
  const { blobs } = run.services;
  const found = await findReviewOfNode(db, run.run.id, planned.node.id);
  if (!found) throw await parkWith(run, planned, records, await ask());
  if (found.status === "open") throw new RunParked();
  // A rejection or a failing timeout ends the run in the same transaction.
  assert(found.status === "approved" || found.status === "timed_out", "a run only continues when approved");
  const key = must(await run.journal.findSource(planned.node.id), "the records of the review");
  return withChanges(db, decodeRecords(blobs.open(key)), found.id, await recheckEdited(run, planned));
}

async function parkWith(
  run: RunContext,
  planned: PlannedNode,
  records: RecordBatches,
  question: ReviewQuestion,
): Promise<RunParked> {
  const counts = (await countFixed(run, planned)) ?? (await storeSource(run, planned, records)).counts;
  const review = {
    ...question,
    id: newId(ID_PREFIX.review),
    accountId: run.run.accountId,
    runId: run.run.id,
    nodeId: planned.node.id,
    title: run.redact.text(question.title),
    instructions: question.instructions === null ? null : run.redact.text(question.instructions),
    recordsTotal: counts.total,
    recordsValid: counts.valid,
  };
  return new RunParked(async (tx) => {
    await insertReview(tx, review);
    await failpoint("review.after_insert");
  });
}

/** A worker may have died between storing the records and parking the run. */
async function countFixed(run: RunContext, planned: PlannedNode): Promise<RecordCounts | null> {
  const key = await run.journal.findSource(planned.node.id);
  if (key === null) return null;
  const counts: RecordCounts = { total: 0, valid: 0 };
  for await (const batch of decodeRecords(run.services.blobs.open(key))) {
    counts.total += batch.length;
    counts.valid += batch.filter((record) => record.isValid).length;
  }
  return counts;
}

/** Merges records and changes in one pass, without holding either in memory. */
async function* withChanges(
  db: Database,
  batches: RecordBatches,
  reviewId: string,
  recheck: Recheck,
): RecordBatches {
  let first = 0;
  let changes: readonly StoredChange[] = [];
  // All changes of earlier ordinals have been read.
  let readTo = 0;
  for await (const batch of batches) {
    const end = first + batch.length;
    while (readTo < end) {
      const more = await listChanges(db, reviewId, readTo, limits.recordBatchSizeMax);
      changes = [...changes, ...more];
      const last = more.at(-1);
      readTo = last && more.length === limits.recordBatchSizeMax ? last.ordinal + 1 : Infinity;
    }
    const mine = new Map(
      changes.filter(({ ordinal }) => ordinal < end).map((each) => [each.ordinal, each.data]),
    );
    changes = changes.filter(({ ordinal }) => ordinal >= end);
    const left = mine.size === 0 ? batch : await changeBatch(batch, first, mine, recheck);
    first = end;
    if (left.length > 0) yield left;
  }
}

async function changeBatch(
  batch: readonly DataRecord[],
  first: number,
  changes: ReadonlyMap<number, Buffer | null>,
  recheck: Recheck,
): Promise<readonly DataRecord[]> {
  const edited = [...changes].flatMap(([ordinal, data]) => {
    if (data === null) return [];
    const before = must(batch[ordinal - first], "a record of the review");
    return [{ ordinal, before, data: withHandlesOf(before.data, readData(data)) as JsonObject }];
  });
  const rechecked = await recheck(edited);
  const byPlace = new Map(edited.map(({ ordinal }, index) => [ordinal, rechecked[index]]));
  return batch.flatMap((record, index) => {
    const change = changes.get(first + index);
    if (change === undefined) return [record];
    return change === null ? [] : [must(byPlace.get(first + index), "the edited record")];
  });
}

const readData = (data: Buffer): JsonObject => JSON.parse(data.toString("utf8")) as JsonObject;
