import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { EXPRESSION, type BoundExpressions, type Outcome } from "#domain/expression.ts";
import { isJsonObject, type Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { wholeRecordsOf } from "#nodes/at-once.ts";
import { defineNode, NodeFailure, type ConfigFinding, type Flow } from "#nodes/define-node.ts";
import { kindOf, valueOf } from "#nodes/records/expression-value.ts";
import { readConfig } from "#domain/read-config.ts";
import { inBatches, indexedBatches, recordScopes } from "#nodes/records/record-flow.ts";

const schema = Type.Object(
  {
    fields: Type.Optional(
      Type.Record(Type.String(), Type.String({ minLength: 1, [EXPRESSION]: "record" }), {
        minProperties: 1,
        description:
          "The fields of the new record: names, each with an expression over the old record. A field whose expression has no value is left out.",
      }),
    ),
    expression: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "record",
        description:
          "An expression for the new record: an object, a list of objects for several records, or no value for none.",
      }),
    ),
  },
  { additionalProperties: false },
);

type MapConfig = Static<typeof schema>;

/** docs/nodes/map.md. A record's `errors` and `isValid` are kept, and copied to all records that are made from it. */
export const node = defineNode({
  type: "map",
  description: "Turns every record into a new record, or into several.",
  schema,
  takes: "records",
  usesCredential: false,
  gives: () => "records",
  effect: () => "none",
  check: (config): readonly ConfigFinding[] =>
    (config["fields"] === undefined) === (config["expression"] === undefined)
      ? [
          {
            path: config["fields"] === undefined ? [] : ["expression"],
            message: "a map needs either `fields` or `expression`",
          },
        ]
      : [],
  run: (context, config) =>
    Promise.resolve({
      kind: "records",
      batches: mapped(context.from, context.expressions, readConfig(schema, config)),
    }),
  runAtOnce: (context, raw) => {
    const config = readConfig(schema, raw);
    const batch = wholeRecordsOf(context.from);
    const outcomes = batch && context.evaluate(sourcesOf(config), recordScopes(batch, 0));
    if (!batch || !outcomes) return null;
    const records = mappedOf(batch, 0, outcomes, config);
    return records.length > limits.recordBatchSizeMax ? null : { kind: "records", records };
  },
});

const sourcesOf = ({ fields = {}, expression }: MapConfig): readonly string[] =>
  expression === undefined ? Object.values(fields) : [expression];

async function* mapped(
  from: readonly Flow[],
  expressions: BoundExpressions,
  config: MapConfig,
): RecordBatches {
  const sources = sourcesOf(config);
  for await (const { first, batch } of indexedBatches(from)) {
    const outcomes = await expressions.evaluateBatch(sources, recordScopes(batch, first));
    yield* inBatches(mappedOf(batch, first, outcomes, config));
  }
}

function mappedOf(
  batch: readonly DataRecord[],
  first: number,
  outcomes: readonly (readonly Outcome[])[],
  config: MapConfig,
): readonly DataRecord[] {
  const names = Object.keys(config.fields ?? {});
  return batch.flatMap((record, index): readonly DataRecord[] => {
    const row = outcomes[index];
    const place = `Record ${first + index}`;
    if (config.expression !== undefined) {
      return toRecords(record, valueOf(row?.[0], `${place}: expression`), `${place}: expression`);
    }
    const values = names.map(
      (name, field) => [name, valueOf(row?.[field], `${place}: fields.${name}`)] as const,
    );
    return [
      {
        ...record,
        data: Object.fromEntries(
          values.filter((entry): entry is readonly [string, Json] => entry[1] !== undefined),
        ),
      },
    ];
  });
}

function toRecords(record: DataRecord, value: Json | undefined, place: string): readonly DataRecord[] {
  if (value === undefined || value === null) return [];
  const items: readonly Json[] = Array.isArray(value) ? value : [value as Json];
  return items.map((data) => {
    if (!isJsonObject(data))
      throw new NodeFailure(
        `${place} evaluates to ${kindOf(data)}; it must be an object, a list of objects, or nothing.`,
      );
    return { ...record, data };
  });
}
