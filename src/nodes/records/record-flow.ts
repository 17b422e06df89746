import type { Scope } from "#domain/expression.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { validRecord, type DataRecord, type RecordBatches } from "#domain/record.ts";
import { assert } from "#lib/assert.ts";
import { kindOf } from "./expression-value.ts";
import { NodeFailure, type Flow } from "#nodes/define-node.ts";

/** The records of several sources, one source after the other. */
export async function* recordsOf(flows: readonly Flow[]): RecordBatches {
  for (const flow of flows) {
    assert(flow.kind === "records", "the source outputs records");
    yield* flow.batches;
  }
}

/** Batches with the `$index` of their first record, for nodes that count over the whole set. */
export async function* indexedBatches(
  flows: readonly Flow[],
): AsyncIterable<{ readonly first: number; readonly batch: readonly DataRecord[] }> {
  let first = 0;
  for await (const batch of recordsOf(flows)) {
    yield { first, batch };
    first += batch.length;
  }
}

/** docs/blueprints.md#expressions: the root is the record's data; everything else is a variable. */
export function recordScopes(batch: readonly DataRecord[], first: number): readonly Scope[] {
  return batch.map((record, index) => ({
    root: record.data,
    variables: {
      index: first + index,
      isValid: record.isValid,
      errors: record.errors.map(({ field, code, message }) => ({ field, code, message })),
    },
  }));
}

/** Splits a list into slices of at most a batch's size. */
export function* inBatches<Item>(items: readonly Item[]): Iterable<readonly Item[]> {
  for (let start = 0; start < items.length; start += limits.recordBatchSizeMax) {
    yield items.slice(start, start + limits.recordBatchSizeMax);
  }
}

/** A list becomes one record per item, an object one record, and nothing none. Throws NodeFailure for anything else. */
export function recordsFromJson(json: Json | undefined, place: string, first = 0): readonly DataRecord[] {
  if (json === undefined || json === null) return [];
  if (isJsonObject(json)) return [validRecord(json)];
  if (!Array.isArray(json))
    throw new NodeFailure(
      `${place} evaluates to ${kindOf(json)}; it must be a list of objects, or one object.`,
    );
  return json.map((item: Json, index) => validRecord(recordData(item, `${place}: item ${first + index}`)));
}

/** The same in batches, created one after the other, because many small items take less memory than their records. */
export function* batchesFromJson(
  json: Json | undefined,
  place: string,
  first = 0,
): Generator<readonly DataRecord[]> {
  if (!Array.isArray(json)) {
    const records = recordsFromJson(json, place);
    if (records.length > 0) yield records;
    return;
  }
  let start = first;
  for (const batch of inBatches<Json>(json)) {
    yield recordsFromJson(batch, place, start);
    start += batch.length;
  }
}

function recordData(item: Json, place: string): JsonObject {
  if (isJsonObject(item)) return item;
  throw new NodeFailure(
    `${place} is ${kindOf(item)}; every record must be an object. Create one, for example with \`items.{ "value": $ }\`.`,
  );
}
