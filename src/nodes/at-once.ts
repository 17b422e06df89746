import type { BlueprintNode } from "#domain/blueprint.ts";
import type { Outcome, Scope } from "#domain/expression.ts";
import { limits } from "#domain/limits.ts";
import type { DataRecord } from "#domain/record.ts";
import type { Value } from "#domain/value.ts";
import { assert } from "#lib/assert.ts";

/** The output of a node as a whole: a value, at most a batch of records, or results that were written. */
export type WholeFlow =
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "records"; readonly records: readonly DataRecord[] }
  | { readonly kind: "results" };

/** All capabilities of a node that is executed without waiting. */
export interface AtOnceContext {
  readonly node: BlueprintNode;
  /** The outputs of the node's `from`, in its order. */
  readonly from: readonly WholeFlow[];
  input(refKey: string): Value;
  /** As `evaluateBatch`, with the same variables. null: an expression needs its thread. */
  evaluate(sources: readonly string[], rows: readonly Scope[]): readonly (readonly Outcome[])[] | null;
  /** As in `NodeContext`. False: the records don't fit a row, and nothing was written. */
  writeResult(handle: string | null, records: readonly DataRecord[]): boolean;
}

/** The records of all sources; null: more than a batch. */
export function wholeRecordsOf(flows: readonly WholeFlow[]): readonly DataRecord[] | null {
  const [only, ...others] = flows.map((flow) => {
    assert(flow.kind === "records", "the source outputs records");
    return flow.records;
  });
  const records = others.length === 0 ? (only ?? []) : [only ?? [], ...others].flat();
  return records.length > limits.recordBatchSizeMax ? null : records;
}
