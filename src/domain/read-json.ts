import type { Scope } from "./expression.ts";
import type { Json } from "./json.ts";
import { limits } from "./limits.ts";
import { excessOf } from "#lib/json-text.ts";

export type ReadJson =
  | { readonly ok: true; readonly json: Json }
  | {
      readonly ok: false;
      readonly problem: string;
      /** The text may be JSON, but exceeds the limits. */
      readonly isTooMuch: boolean;
    };

/**
 * Parses JSON text from outside. Nesting is capped: `JSON.parse` accepts any depth, and serialising or cloning
 * the value later would overflow the stack (docs/decisions/0028). Values are counted before parsing: one of three
 * characters takes up to a hundred bytes. The problem contains no part of the text.
 */
export function readJson(text: string): ReadJson {
  // `JSON.parse` blocks for 0.8 s on 5 MB of open brackets before it throws.
  const problem = boundsProblem(text);
  if (problem !== null) return tooMuch(problem);
  let json: Json;
  try {
    // A byte order mark is not part of JSON, but exports contain one.
    json = JSON.parse(text.startsWith("\uFEFF") ? text.slice(1) : text) as Json;
  } catch {
    return {
      ok: false,
      problem: text.trim() === "" ? "is empty, not JSON" : "is not JSON",
      isTooMuch: false,
    };
  }
  if (isDeeperThan(json, limits.dataDepthMax)) return tooMuch(TOO_DEEP);
  return { ok: true, json };
}

export type ReadRoot =
  | { readonly ok: true; readonly root: Pick<Scope, "root" | "rootText"> }
  | Extract<ReadJson, { ok: false }>;

/**
 * JSON as the root of an expression: small text is parsed here, large text in the thread that evaluates the expression, so that it does not
 * block. That thread reports errors as NotJson.
 */
export function readRoot(text: string): ReadRoot {
  if (text.length <= UNCHECKED_CHARACTERS) {
    const read = readJson(text);
    return read.ok ? { ok: true, root: { root: read.json } } : read;
  }
  const problem = boundsProblem(text);
  if (problem !== null) return tooMuch(problem);
  return { ok: true, root: { rootText: text.startsWith("\uFEFF") ? text.slice(1) : text } };
}

const tooMuch = (problem: string): Extract<ReadJson, { ok: false }> => ({
  ok: false,
  problem,
  isTooMuch: true,
});
const TOO_DEEP = `is nested deeper than ${limits.dataDepthMax} levels`;
const TOO_MANY = `has more than ${limits.dataValuesMax} values`;
const BOUNDS = { depthMax: limits.dataDepthMax, valuesMax: limits.dataValuesMax };
/** Below this size, the check costs nothing worth saving. */
const UNCHECKED_CHARACTERS = 65_536;

/**
 * Whether JSON is nested too deeply at some place, or has too many values; null: neither. For text that is not
 * JSON the result is undefined.
 */
export function boundsProblem(text: string): string | null {
  if (text.length <= UNCHECKED_CHARACTERS) return null;
  const excess = excessOf(text, BOUNDS);
  return excess && (excess === "depth" ? TOO_DEEP : TOO_MANY);
}

function isDeeperThan(json: Json, levels: number): boolean {
  if (typeof json !== "object" || json === null) return false;
  if (levels === 0) return true;
  const parts: readonly unknown[] = Array.isArray(json) ? json : Object.values(json);
  for (const part of parts) if (isDeeperThan(part as Json, levels - 1)) return true;
  return false;
}
