import type { BlobStore } from "#blobs/store.ts";
import { findReview, type StoredReview } from "#db/runs/reviews.ts";
import type { Database } from "#db/connection/pool.ts";
import { withoutHandles, withoutHandlesIn } from "#domain/handle-text.ts";
import type { DataRecord } from "#domain/record.ts";
import { decodeRecords } from "#domain/record-lines.ts";

/** A record of a review, with its position. */
export interface ReviewedRecord extends DataRecord {
  readonly ordinal: number;
}

/** A review as it is to be shown now: one that has timed out is no longer open, even if no worker has noticed yet. */
export async function readReview(db: Database, id: string): Promise<StoredReview | undefined> {
  const review = await findReview(db, id);
  return review && review.status === "open" && review.isOver ? { ...review, status: "timed_out" } : review;
}

/** Streams the records under review in their order. Throws BlobMissing. */
export async function* readReviewRecords(
  blobs: Pick<BlobStore, "open">,
  review: Pick<StoredReview, "blobKey">,
): AsyncIterable<ReviewedRecord> {
  let ordinal = 0;
  for await (const batch of decodeRecords(blobs.open(review.blobKey)))
    for (const record of batch) yield { ordinal: ordinal++, ...shown(record) };
}

/** Removes the handles that a record holds: later nodes may need them, a reviewer does not. */
const shown = ({ data, errors, isValid }: DataRecord): DataRecord => ({
  data: withoutHandlesIn(data),
  errors: errors.map((error) => ({ ...error, message: withoutHandles(error.message) })),
  isValid,
});
