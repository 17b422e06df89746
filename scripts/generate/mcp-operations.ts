import type { TObject } from "typebox";
import { requiredOf } from "#contract/operator/operation.ts";
import { must } from "#lib/assert.ts";
import { TOOLS } from "../../sdk/mcp/src/tools.ts";
import { OPERATOR_OPERATIONS } from "./operator-operations.ts";

const HEAD = `// Written by \`npm run generate\` from src/contract/operator/, for the tools of tools.ts.

/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

/** An operation of the operator API, as a tool calls it. */
export interface ToolOperation {
  readonly method: string;
  /** Relative to \`/operator/v1\`, parameters in braces. */
  readonly path: string;
  /** The names of the arguments that go into the query. */
  readonly query: readonly string[];
  /** The names of those that go into the body; null: there is no body. */
  readonly body: readonly string[] | null;
  readonly input: {
    readonly type: "object";
    readonly properties: Readonly<Record<string, Schema>>;
    readonly required: readonly string[];
    readonly additionalProperties: false;
  };
}
`;

/** What a parameter of a path names. */
const PARAMETERS: Readonly<Record<string, string>> = {
  runId: "The run's id (`run_...`).",
  reviewId: "The review's id (`rev_...`).",
  resultKey: "The result's key.",
  account: "The account's name.",
  blueprintKey: "The Blueprint's key.",
};

/** `sdk/mcp/src/operations.ts`: the operations that the tools call, with the schemas of their arguments. */
export async function mcpOperations(): Promise<string> {
  const entries = TOOLS.map(({ operation: id }) => {
    const operation = must(
      OPERATOR_OPERATIONS.find((each) => each.id === id),
      `the operation ${id}`,
    );
    const { method, path, query, body } = operation;
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
    const properties = {
      ...Object.fromEntries(
        inPath.map((name) => [name, { type: "string", description: must(PARAMETERS[name], name) }]),
      ),
      ...propertiesOf(query),
      ...propertiesOf(body),
    };
    return [
      id,
      {
        method: method.toUpperCase(),
        path,
        query: Object.keys(propertiesOf(query)),
        // A POST always has a body.
        body: method === "post" ? Object.keys(propertiesOf(body)) : null,
        input: {
          type: "object",
          properties,
          required: [...inPath, ...requiredOf(query), ...requiredOf(body)],
          additionalProperties: false,
        },
      },
    ] as const;
  });
  const written = entries.map(([id, operation]) => `  ${id}: ${JSON.stringify(operation)},\n`).join("");
  return `${HEAD}\nexport const OPERATIONS: Readonly<Record<string, ToolOperation>> = {\n${written}};\n`;
}

const propertiesOf = (schema: TObject | undefined): TObject["properties"] => schema?.properties ?? {};
