import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { EXPRESSION } from "#domain/expression.ts";
import { readConfig } from "#domain/read-config.ts";
import type { RecordBatches } from "#domain/record.ts";
import { must } from "#lib/assert.ts";
import { defineNode, edgesOf, type ConfigFinding, type Flow, type NodeContext } from "#nodes/define-node.ts";
import { joinRecords } from "#nodes/records/join-records.ts";

const pair = Type.Union([
  Type.String({ minLength: 1, [EXPRESSION]: "record" }),
  Type.Object(
    {
      left: Type.String({
        minLength: 1,
        [EXPRESSION]: "record",
        description: "An expression over the records of `from`.",
      }),
      right: Type.String({
        minLength: 1,
        [EXPRESSION]: "record",
        description: "An expression over the records of `with`.",
      }),
    },
    { additionalProperties: false },
  ),
]);

const schema = Type.Object(
  {
    with: Type.String({
      minLength: 1,
      description: "The node whose records' fields are added: the right side.",
    }),
    on: Type.Union([pair, Type.Array(pair, { minItems: 1, maxItems: 20 })], {
      description:
        "The values that must be equal: an expression for both sides, or `{ left, right }`, or a list of these. Null and missing values never match.",
    }),
    kind: Type.Optional(
      Type.Enum(["inner", "left"], {
        default: "inner",
        description: "`left` keeps a record of `from` that has no match, as it is; `inner` drops it.",
      }),
    ),
  },
  { additionalProperties: false },
);

/** docs/nodes/join.md. */
export const node = defineNode({
  type: "join",
  description: "Adds the fields of another node's matching records to every record.",
  schema,
  takes: "records",
  usesCredential: false,
  gives: () => "records",
  effect: () => "none",
  check: (config, common): readonly ConfigFinding[] => {
    const right = readConfig(schema, config).with;
    return common?.from.includes(right) === true
      ? [
          {
            path: ["with"],
            message: `\`with\` names \`${right}\`, which \`from\` already reads; to join records with themselves, put a \`map\` in between`,
          },
        ]
      : [];
  },
  run: (context, raw) => Promise.resolve({ kind: "records", batches: joined(context, raw) }),
});

function joined(context: NodeContext, raw: NodeContext["node"]["config"]): RecordBatches {
  const config = readConfig(schema, raw);
  const isList = Array.isArray(config.on);
  const pairs = isList ? (config.on as readonly Pair[]) : [config.on as Pair];
  const side = (name: "left" | "right", from: readonly Flow[]) => ({
    from,
    sources: pairs.map((each, index) => ({
      expression: typeof each === "string" ? each : each[name],
      place: `${isList ? `on[${index}]` : "on"}${typeof each === "string" ? "" : `.${name}`}${name === "right" ? " of `with`" : ""}`,
    })),
  });
  const right = edgesOf(context.node).indexOf(config.with);
  return joinRecords(context, {
    left: side("left", context.from.toSpliced(right, 1)),
    right: side("right", [must(context.from[right], "the records of `with`")]),
    keepsUnmatched: config.kind === "left",
  });
}

type Pair = Static<typeof pair>;
