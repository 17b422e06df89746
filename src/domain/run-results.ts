import { limits } from "./limits.ts";

export type DeliveryMethod = "direct" | "presigned_url";

/** One stored result key: the JSON of `totalRecords` and `records`, in any order, stored as a Brotli object, or uncompressed when it is small. */
export interface StoredResult {
  readonly key: string;
  readonly totalRecords: number;
  /** The size of the JSON text, uncompressed. */
  readonly jsonBytes: number;
  readonly content: Buffer | null;
  /** null: the content is in `content`. */
  readonly blobKey: string | null;
}

/** An upper bound of the bytes of JSON around the records: the envelope, its names and the metadata. */
const ENVELOPE_BYTES = 512;

/** docs/decisions/0029: computed when the run completes, and stored with it. */
export function estimateResponseBytes(
  results: readonly Pick<StoredResult, "key" | "jsonBytes">[],
  metadataBytes: number,
): number {
  return results.reduce(
    (sum, result) => sum + result.jsonBytes + Buffer.byteLength(result.key) + 8,
    ENVELOPE_BYTES + metadataBytes,
  );
}

/** Spec, GET /blueprint-runs/{runId}/results 1: `direct` falls back at an estimated 5 MB or more; when omitted, `presigned_url` applies. */
export function decideDelivery(asked: DeliveryMethod | undefined, estimatedBytes: number): DeliveryMethod {
  return asked === "direct" && estimatedBytes < limits.directDeliveryBytes ? "direct" : "presigned_url";
}
