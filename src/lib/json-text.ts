/** A JSON number with its digits as written, so that 9007199254740993 is not rounded. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Parsed JSON that can be written again without loss. Objects are Maps, so that `__proto__` is an ordinary name. */
export type JsonTree =
  | null
  | boolean
  | string
  | NumberText
  | readonly JsonTree[]
  | ReadonlyMap<string, JsonTree>;

export interface JsonBounds {
  readonly depthMax: number;
  readonly valuesMax: number;
}

/** Why JSON was refused. Never quotes it, because it may contain a secret. */
export class JsonTextError extends Error {
  override readonly name = "JsonTextError";
  readonly reason: "syntax" | "depth" | "values" | "surrogate";

  constructor(reason: JsonTextError["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Parses JSON within limits that are checked before parsing: a megabyte of brackets is rejected by one pass over its
 * characters. Duplicate names: the last wins, as with JSON.parse. Throws JsonTextError.
 */
export function parseJsonText(text: string, bounds: JsonBounds): JsonTree {
  return runSteps(parseJsonInSteps(text, bounds));
}

/** Work in steps, so that a large task does not block the event loop. */
export type Steps<T> = Generator<undefined, T, undefined>;

export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** The size of a step, far below a millisecond. */
const STEP_VALUES = 500;
const STEP_CHARACTERS = 32_768;

/** `parseJsonText`, in steps. */
export function* parseJsonInSteps(text: string, bounds: JsonBounds): Steps<JsonTree> {
  for (const check = newBoundsCheck(); check.at < text.length;) {
    const excess = findExcess(text, bounds, check, Math.min(check.at + STEP_CHARACTERS, text.length));
    if (excess === "depth")
      throw new JsonTextError("depth", `The body is nested more than ${bounds.depthMax} levels deep.`);
    if (excess === "values")
      throw new JsonTextError("values", `The body contains more than ${bounds.valuesMax} values.`);
    if (check.at < text.length) yield;
  }
  const scanner: Scanner = { text, at: 0, values: 0 };
  const value = opensContainer(scanner) ? yield* readContainer(scanner) : readLeaf(scanner);
  if (nextCode(scanner) !== END) throw syntax();
  return value;
}

interface Scanner {
  readonly text: string;
  at: number;
  /** Counted since the last step. */
  values: number;
}

const END = -1;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/** V8's parser with a reviver is eight times slower, and blocks the event loop on large bodies. */
function readLeaf(scanner: Scanner): JsonTree {
  const code = nextCode(scanner);
  if (code === QUOTE) return readString(scanner);
  if (code === 0x74) return readWord(scanner, "true", true);
  if (code === 0x66) return readWord(scanner, "false", false);
  if (code === 0x6e) return readWord(scanner, "null", null);
  NUMBER.lastIndex = scanner.at;
  if (!NUMBER.test(scanner.text)) throw syntax();
  const start = scanner.at;
  scanner.at = NUMBER.lastIndex;
  return new NumberText(scanner.text.slice(start, scanner.at));
}

function opensContainer(scanner: Scanner): boolean {
  const code = nextCode(scanner);
  return code === OPEN_BRACE || code === OPEN_BRACKET;
}

function readContainer(scanner: Scanner): Steps<JsonTree> {
  return nextCode(scanner) === OPEN_BRACE ? readObject(scanner) : readArray(scanner);
}

/** Peeks at the code of the next non-whitespace character; END after the last. */
function nextCode(scanner: Scanner): number {
  for (; scanner.at < scanner.text.length; scanner.at++) {
    const code = scanner.text.charCodeAt(scanner.at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
  }
  return END;
}

function readWord<T>(scanner: Scanner, word: string, value: T): T {
  if (!scanner.text.startsWith(word, scanner.at)) throw syntax();
  scanner.at += word.length;
  return value;
}

function readString(scanner: Scanner): string {
  const start = scanner.at;
  let escaped = false;
  for (let at = start + 1; at < scanner.text.length; at++) {
    const code = scanner.text.charCodeAt(at);
    if (code === BACKSLASH) {
      escaped = true;
      at++;
    } else if (code === QUOTE) {
      scanner.at = at + 1;
      const value = escaped
        ? unescape(scanner.text.slice(start, scanner.at))
        : scanner.text.slice(start + 1, at);
      if (!value.isWellFormed()) throw lone();
      return value;
    } else if (code < 0x20) break;
  }
  throw syntax();
}

function unescape(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    // V8's own message quotes the body.
    throw syntax();
  }
}

function* readArray(scanner: Scanner): Steps<readonly JsonTree[]> {
  const items: JsonTree[] = [];
  scanner.at++;
  if (nextCode(scanner) === CLOSE_BRACKET) {
    scanner.at++;
    return items;
  }
  for (;;) {
    items.push(opensContainer(scanner) ? yield* readContainer(scanner) : readLeaf(scanner));
    const code = nextCode(scanner);
    scanner.at++;
    if (code === CLOSE_BRACKET) return items;
    if (code !== COMMA) throw syntax();
    if (isStepOver(scanner)) yield;
  }
}

function* readObject(scanner: Scanner): Steps<ReadonlyMap<string, JsonTree>> {
  const members = new Map<string, JsonTree>();
  scanner.at++;
  if (nextCode(scanner) === CLOSE_BRACE) {
    scanner.at++;
    return members;
  }
  for (;;) {
    if (nextCode(scanner) !== QUOTE) throw syntax();
    const name = readString(scanner);
    if (nextCode(scanner) !== COLON) throw syntax();
    scanner.at++;
    members.set(name, opensContainer(scanner) ? yield* readContainer(scanner) : readLeaf(scanner));
    const code = nextCode(scanner);
    scanner.at++;
    if (code === CLOSE_BRACE) return members;
    if (code !== COMMA) throw syntax();
    if (isStepOver(scanner)) yield;
  }
}

function isStepOver(counter: { values: number }): boolean {
  if (++counter.values < STEP_VALUES) return false;
  counter.values = 0;
  return true;
}

function syntax(): JsonTextError {
  return new JsonTextError("syntax", "The body is not valid JSON.");
}

function lone(): JsonTextError {
  return new JsonTextError("surrogate", "The body contains an unpaired surrogate, which is not a character.");
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const COMMA = 0x2c;
const COLON = 0x3a;

/** The state of a bounds check. */
interface BoundsCheck {
  at: number;
  depth: number;
  values: number;
  /** Where the content of the current string begins; -1: not in a string. */
  stringFrom: number;
}

const newBoundsCheck = (): BoundsCheck => ({ at: 0, depth: 0, values: 1, stringFrom: -1 });

/**
 * Whether JSON is nested too deeply or has too many values; null: neither. Nothing is parsed. For text that is not JSON, the
 * result is undefined.
 */
export function excessOf(text: string, bounds: JsonBounds): "depth" | "values" | null {
  return findExcess(text, bounds, newBoundsCheck(), text.length);
}

/** Continues to about `end`. */
function findExcess(
  text: string,
  bounds: JsonBounds,
  check: BoundsCheck,
  end: number,
): "depth" | "values" | null {
  const { depthMax, valuesMax } = bounds;
  let { at, depth, values } = check;
  if (check.stringFrom !== -1) at = closeString(text, at, check, end) + 1;
  for (; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      check.stringFrom = at + 1;
      at = closeString(text, at + 1, check, end);
    } else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      if (++depth > depthMax) return "depth";
      if (++values > valuesMax) return "values";
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--;
    else if (code === COMMA && ++values > valuesMax) return "values";
  }
  check.at = at;
  check.depth = depth;
  check.values = values;
  return null;
}

/** The position of the quote that ends the open string, or of an escaped quote after `last`; the end of the text if there is none. */
function closeString(text: string, at: number, check: BoundsCheck, last: number): number {
  const from = check.stringFrom;
  for (let quote = text.indexOf('"', at); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    const isEnd = text.charCodeAt(quote - 1) !== BACKSLASH || !isEscaped(text, quote, from);
    if (isEnd) check.stringFrom = -1;
    if (isEnd || quote >= last) return quote;
  }
  return text.length;
}

/** Whether an odd number of backslashes precedes a position, counting from `from`. */
function isEscaped(text: string, at: number, from: number): boolean {
  let before = at;
  while (before > from && text.charCodeAt(before - 1) === BACKSLASH) before--;
  return (at - before) % 2 === 1;
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
 * The canonical text of equivalent JSON texts: names sorted by code unit, no whitespace, strings by value; numbers keep their
 * digits, because 9007199254740993 and …992 are the same double (docs/decisions/0010, case 14).
 */
export function canonicalJsonText(value: JsonTree): string {
  return runSteps(canonicalJsonInSteps(value));
}

/** `canonicalJsonText`, in steps. */
export function* canonicalJsonInSteps(value: JsonTree): Steps<string> {
  const leaf = leafText(value);
  return leaf ?? (yield* containerText(value as JsonContainer, { values: 0 }));
}

type JsonContainer = readonly JsonTree[] | ReadonlyMap<string, JsonTree>;

/** null: not a leaf. */
function leafText(value: JsonTree): string | null {
  if (value instanceof NumberText) return value.text;
  return typeof value === "object" && value !== null ? null : JSON.stringify(value);
}

function* containerText(value: JsonContainer, counter: { values: number }): Steps<string> {
  const texts: string[] = [];
  const names = value instanceof Map ? [...(value as ReadonlyMap<string, JsonTree>).keys()].sort() : null;
  const items = names === null ? (value as readonly JsonTree[]) : names;
  for (const each of items) {
    const item =
      names === null ? each : ((value as ReadonlyMap<string, JsonTree>).get(each as string) ?? null);
    const text = leafText(item) ?? (yield* containerText(item as JsonContainer, counter));
    texts.push(names === null ? text : `${JSON.stringify(each)}:${text}`);
    if (isStepOver(counter)) yield;
  }
  return names === null ? `[${texts.join(",")}]` : `{${texts.join(",")}}`;
}
