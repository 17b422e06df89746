import jsonata from "jsonata";
import { must } from "#lib/assert.ts";
import { everyNode, freeVariables, isTreeNode } from "./free-variables.ts";
import type { TreeNode, VariableUse } from "./free-variables.ts";
import { compileRegex } from "./regex-engine.ts";
import { skipLiteral } from "./skip-literal.ts";

/** A longer expression is a program and belongs in a custom node. */
const EXPRESSION_CHARACTERS_MAX = 20_000;

/** While it parses, jsonata copies the left side of `??` and `?:`, so each level of nesting doubles the tree. */
const DEFAULT_LEVELS_MAX = 6;

export interface Compiled {
  readonly ok: true;
  readonly expression: jsonata.Expression;
  readonly tree: TreeNode;
  readonly uses: readonly VariableUse[];
}

export interface NotCompiled {
  readonly ok: false;
  readonly message: string;
  /** Offset in the expression, in UTF-16 units. */
  readonly position: number;
}

/** Parses only. No code of the author runs here, so this is safe on the main thread. */
export function compileExpression(source: string, options?: jsonata.JsonataOptions): Compiled | NotCompiled {
  if (source.length > EXPRESSION_CHARACTERS_MAX) {
    return refused(`is longer than ${EXPRESSION_CHARACTERS_MAX} characters`, EXPRESSION_CHARACTERS_MAX);
  }
  const tooDeep = nestedDefaults(source);
  if (tooDeep !== undefined) {
    return refused(
      `nests ?? or ?: more than ${DEFAULT_LEVELS_MAX} levels deep; bind the inner ones with :=`,
      tooDeep,
    );
  }
  try {
    const expression = jsonata(source, options);
    const tree: unknown = expression.ast();
    if (!isTreeNode(tree)) return refused("doesn't compile", 0);
    const uses = freeVariables(tree);
    const evaluation = uses.find((use) => use.name === "eval");
    if (evaluation !== undefined) {
      return refused("$eval isn't available: text must never become an expression", evaluation.position);
    }
    return checkRegexes(tree) ?? { ok: true, expression, tree, uses };
  } catch (error) {
    return refused(syntaxMessage(error), syntaxPosition(error, source));
  }
}

function refused(message: string, position: number): NotCompiled {
  return { ok: false, message, position };
}

/**
 * The offset of a `??` or `?:` whose left side nests too many others. `a ?? b ?? c` groups to the right, so only brackets nest.
 */
function nestedDefaults(source: string): number | undefined {
  // For each open bracket: the levels of the brackets that were closed inside it, and its own.
  const open = [{ inside: 0, own: 0 }];
  for (let index = 0; index < source.length; index++) {
    const next = skipLiteral(source, 0, index);
    if (next > index) {
      index = next - 1;
      continue;
    }
    const character = source[index] ?? "";
    const frame = must(open.at(-1), "frame");
    if ("([{".includes(character)) open.push({ inside: 0, own: 0 });
    else if (")]}".includes(character) && open.length > 1) {
      open.pop();
      const outer = must(open.at(-1), "frame");
      outer.inside = Math.max(outer.inside, frame.inside, frame.own);
    } else if (character === "?" && (source[index + 1] === "?" || source[index + 1] === ":")) {
      frame.own = frame.inside + 1;
      if (frame.own > DEFAULT_LEVELS_MAX) return index;
      index++;
    }
  }
  return undefined;
}

/**
 * Checks that RE2 supports every regular expression. Also restores those in the copy that `??` and `?:` make of their left side:
 * jsonata copies by JSON, which turns a RegExp into `{}`.
 */
function checkRegexes(tree: TreeNode): NotCompiled | undefined {
  const byPosition = new Map<unknown, RegExp>();
  const broken: TreeNode[] = [];
  everyNode(tree, (node) => {
    if (node["type"] !== "regex") return;
    if (node["value"] instanceof RegExp) byPosition.set(node["position"], node["value"]);
    else broken.push(node);
  });
  for (const node of broken) Object.assign(node, { value: byPosition.get(node["position"]) });
  for (const [position, pattern] of byPosition) {
    try {
      compileRegex(pattern);
    } catch {
      const end = typeof position === "number" ? position : 0;
      const start = Math.max(0, end - pattern.source.length - 2);
      return refused(
        "has a regular expression that RE2 doesn't support (no look-around, no back-references)",
        start,
      );
    }
  }
  return undefined;
}

function syntaxMessage(error: unknown): string {
  if (error instanceof RangeError) return "nests too deeply";
  if (error instanceof SyntaxError) return "has a regular expression that doesn't compile";
  if (typeof error === "object" && error !== null && "code" in error && "message" in error) {
    // The message contains only the author's text: no data is involved yet.
    return `doesn't compile: ${String(error.message).slice(0, 200)}`;
  }
  return "doesn't compile";
}

function syntaxPosition(error: unknown, source: string): number {
  const position =
    typeof error === "object" && error !== null && "position" in error && typeof error.position === "number"
      ? error.position
      : 0;
  return Math.min(position, source.length);
}
