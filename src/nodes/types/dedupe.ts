import { Type } from "#lib/type.ts";
import { EXPRESSION } from "#domain/expression.ts";
import { readConfig } from "#domain/read-config.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { compareJson, digestJson } from "#nodes/records/compare-json.ts";
import { defineNode, type NodeContext } from "#nodes/define-node.ts";
import { keyRecords, type KeySource } from "#nodes/records/record-keys.ts";
import { sortKeyed, type KeyedBatches } from "#nodes/records/sort-keyed.ts";

/** The number of keys that are kept in memory; the records after that are sorted to find duplicates. */
const SEEN_MAX = 50_000;

const expression = Type.String({ minLength: 1, [EXPRESSION]: "record" });

const schema = Type.Object(
  {
    by: Type.Union([expression, Type.Array(expression, { minItems: 1, maxItems: 20 })], {
      description:
        "An expression, or a list of expressions. Of the records with equal values, the first is kept.",
    }),
  },
  { additionalProperties: false },
);

/** docs/nodes/dedupe.md. Kept records retain their order, their `errors` and `isValid`. */
export const node = defineNode({
  type: "dedupe",
  description: "Removes duplicates: keeps the first of the records with equal values.",
  schema,
  takes: "records",
  usesCredential: false,
  gives: () => "records",
  effect: () => "none",
  run: (context, config) => {
    const { by } = readConfig(schema, config);
    const sources = Array.isArray(by)
      ? by.map((each: string, index): KeySource => ({ expression: each, place: `by[${index}]` }))
      : [{ expression: by as string, place: "by" }];
    return Promise.resolve({ kind: "records", batches: firsts(context, sources) });
  },
});

interface Digested {
  readonly digest: string;
  readonly index: number;
  readonly record: DataRecord;
}

/**
 * Records are output at once while their keys fit in memory. Records that are kept of the rest are output after them, so the
 * order is preserved.
 */
async function* firsts(context: NodeContext, sources: readonly KeySource[]): RecordBatches {
  const seen = new Set<string>();
  const batches = digested(context, sources);
  try {
    while (seen.size < SEEN_MAX) {
      const step = await batches.next();
      if (step.done === true) return;
      const fresh = step.value.filter(({ digest }) => !seen.has(digest) && seen.add(digest));
      if (fresh.length > 0) yield fresh.map(({ record }) => record);
    }
    const byDigest = sortKeyed(unseen(batches, seen), compareJson, context.spill);
    for await (const batch of sortKeyed(firstOfEach(byDigest), compareJson, context.spill))
      yield batch.map(({ record }) => record);
  } finally {
    await batches.return();
  }
}

async function* digested(
  context: NodeContext,
  sources: readonly KeySource[],
): AsyncGenerator<readonly Digested[], void, undefined> {
  for await (const { first, entries } of keyRecords(context.from, context.expressions, sources))
    yield entries.map(({ key, record }, index) => ({
      digest: digestJson(key),
      index: first + index,
      record,
    }));
}

async function* unseen(batches: AsyncIterable<readonly Digested[]>, seen: ReadonlySet<string>): KeyedBatches {
  for await (const batch of batches) {
    yield batch
      .filter(({ digest }) => !seen.has(digest))
      .map(({ digest, index, record }) => ({ key: [digest, index], record }));
  }
}

/** The first record of each digest, to be sorted by its position. */
async function* firstOfEach(sorted: KeyedBatches): KeyedBatches {
  let last: unknown = null;
  for await (const batch of sorted) {
    yield batch.flatMap(({ key: [digest = null, index = null], record }) => {
      if (digest === last) return [];
      last = digest;
      return [{ key: [index], record }];
    });
  }
}
