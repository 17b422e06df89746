import type { Json } from "./json.ts";

/** One validation error of a record: `{field, code, message}` (docs/api.md#results). */
export interface RecordError {
  readonly field: string | null;
  readonly code: string;
  readonly message: string;
}

/** A record, as it flows between nodes and appears in results. Spec, Run results: `data`, `errors`, `isValid`. */
export interface DataRecord {
  readonly data: { readonly [field: string]: Json };
  readonly errors: readonly RecordError[];
  readonly isValid: boolean;
}

/** Record sets flow in batches of at most `limits.recordBatchSizeMax` and are never completely in memory. */
export type RecordBatches = AsyncIterable<readonly DataRecord[]>;

/** Records in memory, at most a batch of them, for a reader of batches. */
export async function* batchOf(records: readonly DataRecord[]): RecordBatches {
  if (records.length > 0) yield records;
}

export function validRecord(data: { readonly [field: string]: Json }): DataRecord {
  return { data, errors: [], isValid: true };
}
