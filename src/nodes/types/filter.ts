import { Type } from "#lib/type.ts";
import { EXPRESSION, type BoundExpressions, type Outcome } from "#domain/expression.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { wholeRecordsOf } from "#nodes/at-once.ts";
import { defineNode, NodeFailure, type Flow } from "#nodes/define-node.ts";
import { kindOf, valueOf } from "#nodes/records/expression-value.ts";
import { readConfig } from "#domain/read-config.ts";
import { indexedBatches, recordScopes } from "#nodes/records/record-flow.ts";
import type { Json } from "#domain/json.ts";

const schema = Type.Object(
  {
    where: Type.String({
      minLength: 1,
      [EXPRESSION]: "record",
      description:
        "A condition: records for which it is true are kept. False, null and no value drop the record.",
    }),
  },
  { additionalProperties: false },
);

/** docs/nodes/filter.md. */
export const node = defineNode({
  type: "filter",
  description: "Keeps the records for which `where` is true.",
  schema,
  takes: "records",
  usesCredential: false,
  gives: () => "records",
  effect: () => "none",
  run: (context, config) =>
    Promise.resolve({
      kind: "records",
      batches: kept(context.from, context.expressions, readConfig(schema, config).where),
    }),
  runAtOnce: (context, config) => {
    const { where } = readConfig(schema, config);
    const batch = wholeRecordsOf(context.from);
    const outcomes = batch && context.evaluate([where], recordScopes(batch, 0));
    return batch && outcomes && { kind: "records", records: keptOf(batch, 0, outcomes) };
  },
});

async function* kept(from: readonly Flow[], expressions: BoundExpressions, where: string): RecordBatches {
  for await (const { first, batch } of indexedBatches(from)) {
    const outcomes = await expressions.evaluateBatch([where], recordScopes(batch, first));
    const records = keptOf(batch, first, outcomes);
    if (records.length > 0) yield records;
  }
}

const keptOf = (
  batch: readonly DataRecord[],
  first: number,
  outcomes: readonly (readonly Outcome[])[],
): readonly DataRecord[] =>
  batch.filter((_record, index) => {
    const place = `Record ${first + index}: where`;
    return isWanted(valueOf(outcomes[index]?.[0], place), place);
  });

/** A condition must be true, false or without a value. Anything else is probably a mistake, and would drop records silently. */
export function isWanted(value: Json | undefined, place: string): boolean {
  if (typeof value === "boolean") return value;
  if (value === undefined || value === null) return false;
  throw new NodeFailure(
    `${place} evaluates to ${kindOf(value)}; it must be true or false. Write a comparison, or \`$boolean(…)\`.`,
  );
}
