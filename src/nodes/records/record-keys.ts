import type { BoundExpressions } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import type { Flow } from "#nodes/define-node.ts";
import { valueOf } from "./expression-value.ts";
import { indexedBatches, recordScopes } from "./record-flow.ts";
import type { KeyedRecord } from "./sort-keyed.ts";

/** One value of a key: `[]` where its expression gives nothing, so that nothing is not null. Nothing comes first in the order. */
export type KeyPart = readonly [] | readonly [Json];

/** One expression of a key, and what messages call it. */
export interface KeySource {
  readonly expression: string;
  readonly place: string;
}

export interface KeyedBatch {
  /** The place of the first record. */
  readonly first: number;
  readonly entries: readonly (KeyedRecord & { readonly key: readonly KeyPart[] })[];
}

/** Every record with the values of these expressions. */
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
