import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { EXPRESSION } from "#domain/expression.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { readConfig } from "#domain/read-config.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { must } from "#lib/assert.ts";
import { compareJson, digestJson } from "#nodes/records/compare-json.ts";
import { defineNode, NodeFailure, type ConfigFinding, type NodeContext } from "#nodes/define-node.ts";
import { readDecimal } from "#nodes/records/exact-sum.ts";
import { kindOf } from "#nodes/records/expression-value.ts";
import { ACCUMULATORS, type Accumulator, type Aggregate } from "#nodes/records/group-fields.ts";
import { keyRecords, type KeyPart, type KeySource } from "#nodes/records/record-keys.ts";
import { sortKeyed, type KeyedBatches } from "#nodes/records/sort-keyed.ts";

const expression = Type.String({ minLength: 1, [EXPRESSION]: "record" });
const value = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, [EXPRESSION]: "record", description }));

const field = Type.Object(
  {
    sum: value(
      'The exact sum of numbers, or of decimal strings (`"12.50"`); the sum of strings is a string.',
    ),
    count: Type.Optional(
      Type.Union([Type.Literal(true), expression], {
        description:
          "`true`: the number of records. An expression: the number of records for which it has a value.",
      }),
    ),
    min: value("The smallest value, in the order of `sort`."),
    max: value("The largest value, in the order of `sort`."),
    first: value("The value of the first record that has one."),
    last: value("The value of the last record that has one."),
    collect: value("All values, as a list."),
  },
  { additionalProperties: false, minProperties: 1, maxProperties: 1 },
);

const schema = Type.Object(
  {
    by: Type.Union(
      [
        expression,
        Type.Array(expression, { minItems: 1, maxItems: 20 }),
        Type.Record(Type.String(), expression, { minProperties: 1, maxProperties: 20 }),
      ],
      {
        description:
          "A field, a list of fields, or names with expressions. Records with equal values form a group, and the group's record has these fields.",
      },
    ),
    fields: Type.Optional(
      Type.Record(Type.String(), field, {
        minProperties: 1,
        description:
          "The other fields of the group's record: names, each with one of `sum`, `count`, `min`, `max`, `first`, `last` and `collect`. Null and missing values are ignored.",
      }),
    ),
  },
  { additionalProperties: false },
);

type GroupConfig = Static<typeof schema>;

/** docs/nodes/group.md. Groups are output in the order of their first records. */
export const node = defineNode({
  type: "group",
  description: "Combines records with equal fields into one record, with sums, counts and other aggregates.",
  schema,
  takes: "records",
  usesCredential: false,
  gives: () => "records",
  effect: () => "none",
  check: (config) => groupFindings(readConfig(schema, config)),
  run: (context, config) =>
    Promise.resolve({ kind: "records", batches: grouped(context, readConfig(schema, config)) }),
});

/** Name and expression of each key. */
function keysOf(by: GroupConfig["by"]): readonly (readonly [name: string, source: string])[] {
  if (typeof by === "string") return [[by, by]];
  return Array.isArray(by) ? by.map((name: string) => [name, name] as const) : Object.entries(by);
}

function groupFindings({ by, fields = {} }: GroupConfig): readonly ConfigFinding[] {
  const names = keysOf(by).map(([name]) => name);
  const isNamed = isJsonObject(by);
  return [
    ...names.flatMap((name, index): readonly ConfigFinding[] => {
      const path = typeof by === "string" ? ["by"] : ["by", isNamed ? name : index];
      if (!isNamed && !/^[A-Za-z_]\w*$/.test(name))
        return [
          {
            path,
            message: `\`${name}\` is not a field name; write \`by: { <name>: <expression> }\` for a computed value`,
          },
        ];
      return names.indexOf(name) < index ? [{ path, message: `\`${name}\` is listed twice` }] : [];
    }),
    ...Object.keys(fields).flatMap((name): readonly ConfigFinding[] =>
      names.includes(name)
        ? [
            {
              path: ["fields", name],
              message: `\`${name}\` is a field of \`by\` already; give this one another name`,
            },
          ]
        : [],
    ),
  ];
}

/** One field of a group's record. */
interface GroupField extends KeySource {
  readonly name: string;
  readonly aggregate: Aggregate;
}

function fieldsOf({ fields = {} }: GroupConfig): readonly GroupField[] {
  return Object.entries(fields).map(([name, given]) => {
    const [aggregate, source] = must(Object.entries(given)[0], "the field's aggregate") as [
      Aggregate,
      true | string,
    ];
    return { name, aggregate, expression: source === true ? "true" : source, place: `fields.${name}` };
  });
}

async function* grouped(context: NodeContext, config: GroupConfig): RecordBatches {
  const keys = keysOf(config.by);
  const fields = fieldsOf(config);
  const named = isJsonObject(config.by);
  const sources = [
    ...keys.map(([name, source]): KeySource => ({ expression: source, place: named ? `by.${name}` : "by" })),
    ...fields,
  ];
  const sorted = sortKeyed(entriesOf(context, sources, keys.length, fields), compareJson, context.spill);
  const groups = groupsOf(
    sorted,
    keys.map(([name]) => name),
    fields,
  );
  for await (const batch of sortKeyed(groups, compareJson, context.spill))
    yield batch.map(({ record }) => record);
}

/** Only what the groups need is sorted: the values of the keys and of the fields. */
async function* entriesOf(
  context: NodeContext,
  sources: readonly KeySource[],
  keyCount: number,
  fields: readonly GroupField[],
): KeyedBatches {
  for await (const { first, entries } of keyRecords(context.from, context.expressions, sources))
    yield entries.map(({ key, record }, index) => {
      const parts: readonly KeyPart[] = key;
      const [keys, values] = [parts.slice(0, keyCount), parts.slice(keyCount)];
      for (const [place, each] of fields.entries())
        if (each.aggregate === "sum")
          requireNumber(values[place] ?? [], `Record ${first + index}: ${each.place}.sum`);
      return {
        key: [digestJson(keys), first + index],
        record: { ...record, errors: [], data: { k: keys, v: values } },
      };
    });
}

function requireNumber([given = null]: KeyPart, place: string): void {
  if (given === null || readDecimal(given) !== null) return;
  const what = typeof given === "string" ? "a string that is not a decimal number" : kindOf(given);
  throw new NodeFailure(`${place} evaluates to ${what}; it must be a number, or a string such as "12.50".`);
}

/** A group while its records are read. */
interface OpenGroup {
  readonly digest: Json;
  readonly first: Json;
  readonly keys: readonly KeyPart[];
  readonly accumulators: readonly Accumulator[];
  records: number;
  invalid: number;
}

/** The groups of sorted records, each with the position of its first record as its key. */
async function* groupsOf(
  sorted: KeyedBatches,
  names: readonly string[],
  fields: readonly GroupField[],
): KeyedBatches {
  let open: OpenGroup | null = null;
  for await (const batch of sorted) {
    const ended: { key: readonly Json[]; record: DataRecord }[] = [];
    for (const { key, record } of batch) {
      const [digest = null, place = null] = key;
      if (open !== null && open.digest !== digest) ended.push(closeGroup(open, names, fields));
      if (open === null || open.digest !== digest) {
        const keys = record.data["k"] as unknown as readonly KeyPart[];
        const accumulators = fields.map((each) =>
          ACCUMULATORS[each.aggregate](`${each.place}, record ${Number(place)}`),
        );
        open = { digest, first: place, keys, accumulators, records: 0, invalid: 0 };
      }
      const values = record.data["v"] as unknown as readonly KeyPart[];
      for (const [index, accumulator] of open.accumulators.entries()) {
        const [given = null] = values[index] ?? [];
        if (given !== null) accumulator.add(given);
      }
      open.records += 1;
      if (!record.isValid) open.invalid += 1;
    }
    yield ended;
  }
  if (open !== null) yield [closeGroup(open, names, fields)];
}

function closeGroup(
  { keys, first, accumulators, records, invalid }: OpenGroup,
  names: readonly string[],
  fields: readonly GroupField[],
): { readonly key: readonly Json[]; readonly record: DataRecord } {
  const data: JsonObject = Object.fromEntries([
    ...names.flatMap((name, index) => (keys[index] ?? []).map((given) => [name, given] as const)),
    ...fields.map(({ name }, index) => [name, must(accumulators[index], "an accumulator").get()] as const),
  ]);
  const errors =
    invalid === 0
      ? []
      : [
          {
            field: null,
            code: "group",
            message: `${invalid} of the group's ${records} records are invalid`,
          },
        ];
  return { key: [first], record: { data, errors, isValid: invalid === 0 } };
}
