import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { TEMPLATE, type BoundExpressions } from "#domain/expression.ts";
import { limits } from "#domain/limits.ts";
import { readConfig } from "#domain/read-config.ts";
import { defineNode, NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import { kindOf } from "#nodes/records/expression-value.ts";
import { recordsOf } from "#nodes/records/record-flow.ts";

const TITLE_CHARACTERS_MAX = limits.nameCharactersMax;
const INSTRUCTIONS_CHARACTERS_MAX = 10_000;

const schema = Type.Object(
  {
    title: Type.Optional(
      Type.String({
        minLength: 1,
        [TEMPLATE]: "run",
        description: "The review's heading. Default: the node's name.",
      }),
    ),
    instructions: Type.Optional(
      Type.String({ minLength: 1, [TEMPLATE]: "run", description: "What the reviewer should check." }),
    ),
    editable: Type.Optional(
      Type.Boolean({
        default: false,
        description: "Whether the reviewer may edit records. Excluding records is always possible.",
      }),
    ),
    on_timeout: Type.Optional(
      Type.Enum(["fail", "approve"], {
        default: "fail",
        description: "What happens if nobody decides within `timeout`.",
      }),
    ),
  },
  { additionalProperties: false },
);

/** docs/nodes/review.md. */
export const node = defineNode({
  type: "review",
  description: "Waits for a person who approves, edits or excludes records, or rejects the run.",
  schema,
  takes: "records",
  usesCredential: false,
  isGate: true,
  gives: () => "records",
  // The person is the external effect: the decision is in the journal and is not requested again.
  effect: () => "read",
  check: (config, common) =>
    config["on_timeout"] !== undefined && common?.timeoutMs === null
      ? [
          {
            path: ["on_timeout"],
            message: "`on_timeout` has no effect without `timeout`; add one, for example `timeout: 3d`",
          },
        ]
      : [],
  run: async (context, raw) => {
    const config = readConfig(schema, raw);
    const batches = await context.review(
      recordsOf(context.from),
      async () => await question(context, config),
    );
    return { kind: "records", batches };
  },
});

async function question({ node: self, expressions }: NodeContext, config: Static<typeof schema>) {
  const { title = self.name ?? self.id, instructions, editable = false, on_timeout = "fail" } = config;
  return {
    title: await rendered(expressions, "title", title, TITLE_CHARACTERS_MAX),
    instructions:
      instructions === undefined
        ? null
        : await rendered(expressions, "instructions", instructions, INSTRUCTIONS_CHARACTERS_MAX),
    editable,
    timeoutMs: self.timeoutMs,
    onTimeout: on_timeout,
  };
}

/** Longer text is cut: a title that is too long must not fail the run. */
async function rendered(
  expressions: BoundExpressions,
  key: string,
  template: string,
  charactersMax: number,
): Promise<string> {
  const value = await expressions.render(template);
  if (typeof value !== "string" && typeof value !== "number")
    throw new NodeFailure(`${key} evaluates to ${kindOf(value)}; it must be a string.`);
  const characters = Array.from(String(value));
  return characters.length > charactersMax
    ? `${characters.slice(0, charactersMax - 1).join("")}…`
    : characters.join("");
}
