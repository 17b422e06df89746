/** A JSON number with its digits as written: 9007199254740993 stays itself. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Parsed JSON that can be written again without loss. Objects are Maps, so that `__proto__` is a name like any other. */
export type JsonTree = null | boolean | string | NumberText | readonly JsonTree[] | ReadonlyMap<string, JsonTree>;

export interface JsonBounds {
  readonly depthMax: number;
  readonly valuesMax: number;
}

/** Why a text was refused. Never quotes the text: it may hold a secret. */
export class JsonTextError extends Error {
  override readonly name = "JsonTextError";
  readonly reason: "syntax" | "depth" | "values" | "surrogate";

  constructor(reason: JsonTextError["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Parses JSON within bounds that are checked before parsing costs anything: a megabyte of brackets is turned away by one
 * pass over its characters. Duplicate names: the last wins, as with JSON.parse. Throws JsonTextError.
 */
export function parseJsonText(text: string, bounds: JsonBounds): JsonTree {
  checkBounds(text, bounds);
  let value: unknown;
  try {
    value = JSON.parse(text, readLeaf);
  } catch (error) {
    if (error instanceof JsonTextError) throw error;
    // V8's own message quotes the body.
    throw new JsonTextError("syntax", "The body is not valid JSON.");
  }
  return value as JsonTree;
}

function readLeaf(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value === "number") return new NumberText(context?.source ?? String(value));
  if (typeof value === "string" && !value.isWellFormed()) throw lone();
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof NumberText) return value;
  const names = Object.entries(value);
  if (names.some(([name]) => !name.isWellFormed())) throw lone();
  return new Map(names);
}

function lone(): JsonTextError {
  return new JsonTextError("surrogate", "The body holds a lone surrogate, which is no character.");
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function checkBounds(text: string, bounds: JsonBounds): void {
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === BACKSLASH) index++;
      else if (code === QUOTE) inString = false;
      continue;
    }
    if (code === QUOTE) inString = true;
    else if (code === 0x5b || code === 0x7b) {
      depth++;
      values++;
      if (depth > bounds.depthMax) {
        throw new JsonTextError("depth", `The body is nested more than ${bounds.depthMax} levels deep.`);
      }
    } else if (code === 0x5d || code === 0x7d) depth--;
    else if (code === 0x2c) values++;
    if (values > bounds.valuesMax) {
      throw new JsonTextError("values", `The body holds more than ${bounds.valuesMax} values.`);
    }
  }
}

/** Compact JSON text with numbers as they were written and names in their order. */
export function writeJsonText(value: JsonTree): string {
  if (value instanceof NumberText) return value.text;
  if (value instanceof Map) {
    const entries = [...(value as ReadonlyMap<string, JsonTree>)];
    return `{${entries.map(([name, item]) => `${JSON.stringify(name)}:${writeJsonText(item)}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(writeJsonText).join(",")}]`;
  return JSON.stringify(value);
}

/**
 * The one text of all JSON texts that mean the same: names sorted by code unit, no white space, strings by value; numbers
 * keep their digits, because 9007199254740993 and …992 are one double (design, page 6, 4.3, case 14).
 */
export function canonicalJsonText(value: JsonTree): string {
  if (value instanceof NumberText) return value.text;
  if (value instanceof Map) {
    const entries = [...(value as ReadonlyMap<string, JsonTree>)].sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([name, item]) => `${JSON.stringify(name)}:${canonicalJsonText(item)}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(canonicalJsonText).join(",")}]`;
  return JSON.stringify(value);
}
