import { parseSync } from "oxc-parser";

/** A node of the syntax tree: `start` and `end` are places in the text. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

export const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

/** The tree of a TypeScript file; null: it has errors of syntax. */
export function parse(file: string, text: string): SyntaxNode | null {
  const { program, errors } = parseSync(file, text);
  return errors.length > 0 ? null : (program as unknown as SyntaxNode);
}

/** All nodes, each before what is in it. */
export function* walk(node: SyntaxNode): Generator<SyntaxNode> {
  yield node;
  for (const value of Object.values(node)) {
    for (const inner of Array.isArray(value) ? (value as readonly unknown[]) : [value])
      if (isNode(inner)) yield* walk(inner);
  }
}

/** The last name of what is called: `requireFactor`, `text` of `run.redact.text(…)`. */
export function calledName(node: unknown): string | null {
  if (!isNode(node) || node.type !== "CallExpression" || !isNode(node["callee"])) return null;
  const callee = node["callee"];
  const named = callee.type === "MemberExpression" ? callee["property"] : callee;
  return isNode(named) && typeof named["name"] === "string" ? named["name"] : null;
}
