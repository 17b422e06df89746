import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { EXPRESSION } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { readConfig } from "#domain/read-config.ts";
import type { RecordBatches } from "#domain/record.ts";
import { compareJson } from "#nodes/records/compare-json.ts";
import { defineNode, type NodeContext } from "#nodes/define-node.ts";
import { keyRecords, type KeySource } from "#nodes/records/record-keys.ts";
import { sortKeyed, type KeyedBatches } from "#nodes/records/sort-keyed.ts";

const key = Type.Union([
  Type.String({ minLength: 1, [EXPRESSION]: "record" }),
  Type.Object(
    {
      expression: Type.String({
        minLength: 1,
        [EXPRESSION]: "record",
        description: "The value to sort by.",
      }),
      order: Type.Optional(
        Type.Enum(["ascending", "descending"], {
          default: "ascending",
          description: "`descending`: largest values first.",
        }),
      ),
    },
    { additionalProperties: false },
  ),
]);

const schema = Type.Object(
  {
    by: Type.Union([key, Type.Array(key, { minItems: 1, maxItems: 20 })], {
      description:
        "An expression, or `{ expression, order }`, or a list of these: later ones order the records that are equal in the earlier ones.",
    }),
  },
  { additionalProperties: false },
);

/** docs/nodes/sort.md. A record keeps its `errors` and `isValid`; equal records keep their order. */
export const node = defineNode({
  type: "sort",
  description: "Sorts the records.",
  schema,
  takes: "records",
  usesCredential: false,
  gives: () => "records",
  effect: () => "none",
  run: (context, config) =>
    Promise.resolve({ kind: "records", batches: ordered(context, readConfig(schema, config).by) }),
});

type Key = Static<typeof key>;

async function* ordered(context: NodeContext, by: Static<typeof schema>["by"]): RecordBatches {
  const keys = Array.isArray(by) ? by : [by as Key];
  const sources = keys.map((each, index): KeySource => ({
    expression: typeof each === "string" ? each : each.expression,
    place: Array.isArray(by) ? `by[${index}]` : "by",
  }));
  const signs = keys.map((each) => (typeof each !== "string" && each.order === "descending" ? -1 : 1));
  const compare = (left: readonly Json[], right: readonly Json[]): number => {
    for (const [index, sign] of signs.entries()) {
      const order = compareJson(left[index] ?? [], right[index] ?? []);
      if (order !== 0) return sign * order;
    }
    return 0;
  };
  for await (const batch of sortKeyed(entriesOf(context, sources), compare, context.spill))
    yield batch.map(({ record }) => record);
}

async function* entriesOf(context: NodeContext, sources: readonly KeySource[]): KeyedBatches {
  for await (const { entries } of keyRecords(context.from, context.expressions, sources)) yield entries;
}
