import jsonata from "jsonata";
import { boundedCache } from "./bounded-cache.ts";
import { compileExpression } from "./compile.ts";
import { failureReason } from "./failure-reason.ts";
import { everyNode } from "./free-variables.ts";
import type { TreeNode } from "./free-variables.ts";
import { jsonText } from "./json-text.ts";
import { refuse } from "./refusal.ts";
import { RegexEngine } from "./regex-engine.ts";
import { timeLimit } from "./time-limit.ts";

/** Evaluates an expression inside the thread. Requires that `hardenThread` has been called. */

export interface EvaluationLimits {
  readonly timeoutMs: number;
  readonly depthMax: number;
  readonly itemsMax: number;
  readonly charactersMax: number;
}

export type Evaluated =
  | { readonly ok: true; readonly text: string | undefined }
  | { readonly ok: false; readonly reason: string; readonly timedOut: boolean };

/** Evaluates `source` on `root` and returns the result as JSON text. Never rejects. `restore` undoes jsonata's changes to empty lists. */
export type Evaluate = (
  source: string,
  root: unknown,
  variables: Record<string, unknown>,
  restore: () => void,
) => Promise<Evaluated>;

interface Prepared {
  readonly expression: jsonata.Expression;
  readonly literals: ReadonlySet<string>;
  readonly groups: boolean;
}

const COMPILED_MAX = 1_000;

/** Not a valid variable name, so an expression can neither call nor replace it. */
const ONLY_COPIES = "(only copies)";

export async function guardedJsonata(limits: EvaluationLimits): Promise<Evaluate> {
  const fence = await fenceBuiltIns(limits.charactersMax);
  const time = timeLimit(limits.timeoutMs);
  const options = Object.freeze({
    /** jsonata reads it at every step and compares it with the clock. */
    get timeout(): number {
      return time.allowedMs();
    },
    stack: limits.depthMax,
    sequence: limits.itemsMax,
    // jsonata uses `new`, `lastIndex` and `exec` only.
    RegexEngine: RegexEngine as unknown as RegExpConstructor,
  });
  const prepare = (source: string): Prepared | string => {
    const compiled = compileExpression(source, options);
    if (!compiled.ok) return `${compiled.message} (at character ${compiled.position})`;
    const literals = new Set<string>();
    let groups = false;
    everyNode(compiled.tree, (node) => {
      if (node["type"] === "string" && typeof node["value"] === "string") literals.add(node["value"]);
      if (node["type"] === "transform") fenceTransform(node);
      if (node["group"] !== undefined) groups = true;
    });
    compiled.expression.assign(ONLY_COPIES, fence);
    // `compileExpression` rejects it by name. This covers names that it might miss.
    compiled.expression.assign("eval", undefined);
    return { expression: compiled.expression, literals, groups };
  };
  const cache = boundedCache<Prepared | string>(COMPILED_MAX);

  return async (source, root, variables, restore) => {
    let literals: ReadonlySet<string> = new Set();
    try {
      const prepared = cache.get(source, prepare);
      if (typeof prepared === "string") return { ok: false, reason: prepared, timedOut: false };
      literals = prepared.literals;
      time.begin();
      const value: unknown = await prepared.expression.evaluate(root, variables);
      const text = jsonText(value, limits.charactersMax);
      if (prepared.groups) restore();
      return { ok: true, text };
    } catch (error) {
      restore();
      const timedOut = typeof error === "object" && error !== null && Reflect.get(error, "code") === "D1012";
      return {
        ok: false,
        reason: failureReason(error, { source, literals, timeoutMs: limits.timeoutMs }),
        timedOut,
      };
    }
  };
}

/**
 * The transform operator modifies whatever its pattern returns, which may be a variable that other expressions share, or one of
 * the interpreter's own functions. So its pattern is wrapped in a check that accepts only copies.
 */
function fenceTransform(node: TreeNode): void {
  const call = {
    type: "function",
    value: "(",
    position: node["position"],
    procedure: { type: "variable", value: ONLY_COPIES, position: node["position"] },
    arguments: [node["pattern"]],
  };
  Object.assign(node, { pattern: call });
}

/** How jsonata registers a built-in function. The parameters' names matter: jsonata reads them from the source text. */
interface BuiltIn {
  implementation: (...values: never[]) => unknown;
}

/**
 * Changes three built-in functions in place and creates the check for `fenceTransform`: `$clone` records its copies, `$replace`
 * (the one that concatenates with `+`) checks the length, and `$base64encode` rejects characters that it can't encode.
 */
async function fenceBuiltIns(charactersMax: number): Promise<object> {
  const copies = new WeakSet<object>();
  const clone = await builtIn("clone");
  const originalClone = clone.implementation as (arg: unknown) => unknown;
  clone.implementation = (arg: unknown): unknown => {
    const copy = originalClone(arg);
    remember(copy, copies);
    return copy;
  };
  const replace = await builtIn("replace");
  const originalReplace = replace.implementation as (this: unknown, ...values: unknown[]) => Promise<unknown>;
  replace.implementation = async function (
    this: unknown,
    str: unknown,
    pattern: unknown,
    replacement: unknown,
    limit: unknown,
  ) {
    const text = await originalReplace.call(this, str, pattern, replacement, limit);
    if (typeof text === "string" && text.length > charactersMax) {
      refuse(`produces a string of more than ${charactersMax} characters`);
    }
    return text;
  };
  const encode = await builtIn("base64encode");
  const originalEncode = encode.implementation as (this: unknown, str: unknown) => unknown;
  encode.implementation = function (this: unknown, str: unknown): unknown {
    // jsonata would truncate each to one byte. The result would be a different string, or in a login a different password.
    if (typeof str === "string" && /[^\u0000-\u00ff]/.test(str))
      refuse("base64encode accepts only characters up to U+00FF");
    return originalEncode.call(this, str);
  };
  const onlyCopies = (matches: unknown): unknown => {
    for (const match of Array.isArray(matches) ? matches : [matches]) {
      const isValue = (typeof match !== "object" && typeof match !== "function") || match === null;
      if (!isValue && !copies.has(match))
        refuse("a transform can only change parts of the value it is applied to");
    }
    return matches;
  };
  return { _jsonata_function: true, implementation: onlyCopies };
}

async function builtIn(name: string): Promise<BuiltIn> {
  return (await jsonata(`$${name}`).evaluate(undefined)) as BuiltIn;
}

function remember(value: unknown, into: WeakSet<object>): void {
  if (typeof value !== "object" || value === null) return;
  into.add(value);
  for (const item of Object.values(value)) remember(item, into);
}
