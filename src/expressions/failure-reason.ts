import { isRefusal } from "./refusal.ts";

/**
 * Explains why an evaluation failed without quoting data: jsonata's own messages contain the values that they failed on, which
 * may be a customer's or, in a login, a secret. Only the code, the position and the author's text are used.
 */

const MESSAGES: { readonly [code: string]: string } = {
  T0410: "argument {index} of {token} has the wrong type",
  T0411: "the context can't be used as argument {index} of {token}",
  T0412: "argument {index} of {token} must be a list of one type",
  D1001: "a number is out of range",
  D1002: "only a number can be negated",
  T1003: "a key of an object must be a string",
  D1004: "the regular expression matches the empty string",
  T1005: "calls something that is not a function; did you forget the $?",
  T1006: "calls something that is not a function",
  T1007: "calls something that is not a function; did you forget the $?",
  T1008: "calls something that is not a function",
  D1009: "two keys of an object are the same",
  T1010: "the matcher of {token} does not return a match",
  D1011: "recurses too deeply",
  D1013: "uses a key that JSONata reserves",
  T2001: "the left side of {token} must be a number",
  T2002: "the right side of {token} must be a number",
  T2003: "the left side of .. must be an integer",
  T2004: "the right side of .. must be an integer",
  T2006: "the right side of ~> must be a function",
  T2007: "can't order values of different types",
  T2008: "only numbers and strings can be ordered",
  T2009: "both sides of {token} must have the same type",
  T2010: "both sides of {token} must be numbers or strings",
  T2011: "the update of a transform must be an object",
  T2012: "the deletions of a transform must be strings",
  T2013: "$clone is bound to something that is not a function",
  D2014: "produces a list that is too long",
  D2015: "produces a list that is too long",
  D3001: "can't convert a number that is not finite to a string",
  D3010: "the pattern of $replace must not be empty",
  D3011: "the limit of $replace must be positive",
  D3012: "the replacement of $replace must be a string",
  D3020: "the limit of $split must be positive",
  D3030: "a value can't be converted to a number",
  D3040: "the limit of $match must be positive",
  D3050: "the function of $reduce must take two arguments",
  D3060: "$sqrt of a negative number",
  D3061: "the result of $power is out of range",
  D3070: "$sort needs a function to order these values",
  D3100: "the radix of $formatBase must be between 2 and 36",
  D3110: "the argument of $toMillis is not an ISO 8601 timestamp",
  D3130: "this number format isn't supported",
  D3131: "the digits of a number format must be from one decimal family",
  D3132: "a date format has an unknown component",
  D3133: "a date format asks for the name of something other than a month or a day",
  D3134: "the time zone of a date format has more than four digits",
  D3135: "a date format has no closing bracket",
  D3136: "a date format lacks parts that are needed to parse a timestamp",
  D3137: "$error was called",
  D3138: "$single found more than one",
  D3139: "$single found none",
  D3140: "a URL is malformed",
  D3141: "$assert failed",
};

/** The author's own message is shown only if it is a literal of the source: a computed one may contain data. */
const AUTHORED = new Set(["D3137", "D3141"]);

export interface FailureContext {
  readonly source: string;
  /** The string literals of the expression. */
  readonly literals: ReadonlySet<string>;
  readonly timeoutMs: number;
}

export function failureReason(error: unknown, context: FailureContext): string {
  if (isRefusal(error)) return error.message;
  if (error instanceof RangeError) return rangeReason(error);
  // jsonata sets a position on the value that it calls, and shared data is frozen.
  if (error instanceof TypeError && /extensible|read only/.test(error.message))
    return "calls something that is not a function";
  const code = textOf(error, "code");
  const position = positionOf(error);
  const where = position === undefined ? "" : ` (at character ${position})`;
  if (code === "D1012") return tookTooLong(context.timeoutMs);
  const message = textOf(error, "message");
  if (AUTHORED.has(code) && context.literals.has(message)) return `${message}${where}`;
  const known = Object.hasOwn(MESSAGES, code) ? MESSAGES[code] : undefined;
  if (known !== undefined) return `${fill(known, error, context)}${where}`;
  if (/^D30[89]/.test(code)) return `the picture of $formatNumber is not valid${where}`;
  return `can't be evaluated${/^[A-Z]\d{4}$/.test(code) ? ` (JSONata ${code})` : ""}${where}`;
}

export function tookTooLong(timeoutMs: number): string {
  return `took longer than ${timeoutMs / 1_000} s`;
}

function rangeReason(error: RangeError): string {
  if (/call stack/.test(error.message)) return "recurses too deeply";
  return /string/.test(error.message)
    ? "produces a string that is too long"
    : "produces a value that is out of range";
}

/** `{index}` is a number and `{token}` an operator or function; the latter only if the author wrote it. */
function fill(message: string, error: unknown, context: FailureContext): string {
  const token = textOf(error, "token");
  const named = /^\w{1,60}$/.test(token) ? `$${token}` : token;
  const written = token !== "" && token.length <= 60 && context.source.includes(token);
  const index = typeof error === "object" && error !== null && "index" in error ? error.index : undefined;
  return message
    .replace("{index}", typeof index === "number" ? String(index) : "")
    .replace("{token}", () => (written ? named : "a function"));
}

function textOf(error: unknown, key: string): string {
  if (typeof error !== "object" || error === null) return "";
  const value: unknown = Reflect.get(error, key);
  return typeof value === "string" ? value : "";
}

function positionOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const value: unknown = Reflect.get(error, "position");
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
}
