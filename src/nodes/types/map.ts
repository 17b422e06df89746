import { Type, type Static } from "typebox";
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
          "The fields of the new record: name to expression over the old one. A field whose expression gives nothing is left out.",
      }),
    ),
    expression: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "record",
        description:
          "Gives the new record as an object, several as a list of objects, or nothing for no record.",
      }),
    ),
  },
  { additionalProperties: false },
);

type MapConfig = Static<typeof schema>;

/** docs/nodes/map.md. A record keeps its `errors` and `isValid`, and so do all that are made of it. */
export const node = defineNode({
  type: "map",
  description: "Makes a new record, or several, of every record.",
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
            message: "a map has either `fields` or `expression`",
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
        `${place} gives ${kindOf(data)}; it must give an object, a list of objects, or nothing.`,
      );
    return { ...record, data };
  });
}
