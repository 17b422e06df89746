import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { EXPRESSION, type BoundExpressions } from "#domain/expression.ts";
import { isJsonObject, type Json } from "#domain/json.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
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
});

async function* mapped(
  from: readonly Flow[],
  expressions: BoundExpressions,
  config: MapConfig,
): RecordBatches {
  const fields = Object.entries(config.fields ?? {});
  const sources = config.expression === undefined ? fields.map(([, source]) => source) : [config.expression];
  for await (const { first, batch } of indexedBatches(from)) {
    const outcomes = await expressions.evaluateBatch(sources, recordScopes(batch, first));
    const records = batch.flatMap((record, index): readonly DataRecord[] => {
      const row = outcomes[index];
      const place = `Record ${first + index}`;
      if (config.expression !== undefined) {
        return toRecords(record, valueOf(row?.[0], `${place}: expression`), `${place}: expression`);
      }
      const values = fields.map(
        ([name], field) => [name, valueOf(row?.[field], `${place}: fields.${name}`)] as const,
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
    yield* inBatches(records);
  }
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
