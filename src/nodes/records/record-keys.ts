import type { BoundExpressions } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import type { Flow } from "#nodes/define-node.ts";
import { valueOf } from "./expression-value.ts";
import { indexedBatches, recordScopes } from "./record-flow.ts";
import type { KeyedRecord } from "./sort-keyed.ts";

/** One value of a key: `[]` if its expression has no value, to distinguish it from null. It comes first in the order. */
export type KeyPart = readonly [] | readonly [Json];

/** One expression of a key, with its name for messages. */
export interface KeySource {
  readonly expression: string;
  readonly place: string;
}

export interface KeyedBatch {
  /** The position of the first record. */
  readonly first: number;
  readonly entries: readonly (KeyedRecord & { readonly key: readonly KeyPart[] })[];
}

/** Adds the values of these expressions to every record. */
export async function* keyRecords(
  from: readonly Flow[],
  expressions: BoundExpressions,
  sources: readonly KeySource[],
): AsyncGenerator<KeyedBatch, void, undefined> {
  const texts = sources.map(({ expression }) => expression);
  for await (const { first, batch } of indexedBatches(from)) {
    const outcomes = await expressions.evaluateBatch(texts, recordScopes(batch, first));
    const entries = batch.map((record, index) => ({
      record,
      key: sources.map(({ place }, part): KeyPart => {
        const value = valueOf(outcomes[index]?.[part], `Record ${first + index}: ${place}`);
        return value === undefined ? [] : [value];
      }),
    }));
    yield { first, entries };
  }
}
