import type { Json } from "#domain/json.ts";

/** The value can't be determined here: a thread must evaluate the expression. */
export const NEEDS_SANDBOX = Symbol("needs sandbox");

/** A value, undefined for no value, or `NEEDS_SANDBOX`. */
export type PlainValue = Json | undefined | typeof NEEDS_SANDBOX;

/** Longer strings are left to a thread, which has limits and can be ended. */
export const TEXT_CHARACTERS_MAX = 100_000;

/** JSONata 2.2.2's `$boolean`, for values other than lists and objects. */
export function truth(value: PlainValue): boolean | typeof NEEDS_SANDBOX {
  switch (typeof value) {
    case "undefined":
      return false;
    case "boolean":
      return value;
    case "string":
      return value.length > 0;
    case "number":
      return value !== 0;
    default:
      return value === null ? false : NEEDS_SANDBOX;
  }
}

/** JSONata 2.2.2's `$string`. */
export function textOf(value: PlainValue): string | typeof NEEDS_SANDBOX {
  switch (typeof value) {
    case "string":
      return value.length > TEXT_CHARACTERS_MAX ? NEEDS_SANDBOX : value;
    case "number":
      return String(Number.isInteger(value) ? value : Number(value.toPrecision(15)));
    case "boolean":
      return String(value);
    default:
      return value === null ? "null" : NEEDS_SANDBOX;
  }
}

/** JSON has no -0, and no number that isn't finite. */
export function finite(value: number): PlainValue {
  if (!Number.isFinite(value)) return NEEDS_SANDBOX;
  return value === 0 ? 0 : value;
}

const NUMBER = /^-?[0-9]+(\.[0-9]+)?([Ee][-+]?[0-9]+)?$/;

function number(value: PlainValue): PlainValue {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "number") return value;
  return typeof value === "string" && value.length < 400 && NUMBER.test(value)
    ? finite(Number.parseFloat(value))
    : NEEDS_SANDBOX;
}

/** Half to even, as JSONata 2.2.2 rounds. */
function round(value: number, precision: number): PlainValue {
  const shift = (by: number, places: number): number => {
    const [digits, exponent] = String(by).split("e");
    return Number(`${digits}e${Number(exponent ?? 0) + places}`);
  };
  const shifted = precision === 0 ? value : shift(value, precision);
  let rounded = Math.round(shifted);
  if (Math.abs(rounded - shifted) === 0.5 && Math.abs(rounded % 2) === 1) rounded -= 1;
  return finite(precision === 0 ? rounded : shift(rounded, -precision));
}

type PlainFunction = (...values: readonly PlainValue[]) => PlainValue;

const ofNumber =
  (apply: (value: number) => number): PlainFunction =>
  (value) =>
    typeof value === "number" ? finite(apply(value)) : NEEDS_SANDBOX;

const ofText =
  (apply: (text: string) => Json): PlainFunction =>
  (value) =>
    typeof value === "string" && value.length <= TEXT_CHARACTERS_MAX ? apply(value) : NEEDS_SANDBOX;

const ofTexts =
  (apply: (text: string, other: string) => Json): PlainFunction =>
  (value, other) =>
    typeof value === "string" && typeof other === "string" && value.length <= TEXT_CHARACTERS_MAX
      ? apply(value, other)
      : NEEDS_SANDBOX;

const cut = (text: string, start: number, end?: number): string => text.slice(start, end);

/**
 * Built-in functions of JSONata 2.2.2 whose time and result are bounded by their arguments, each with its number of arguments.
 * None is called without its first argument: the result is then no value.
 */
export const PLAIN_FUNCTIONS: ReadonlyMap<string, PlainFunction> = new Map<string, PlainFunction>([
  ["number/1", number],
  ["string/1", (value) => textOf(value)],
  ["boolean/1", (value) => truth(value)],
  [
    "not/1",
    (value) => {
      const known = truth(value);
      return known === NEEDS_SANDBOX ? NEEDS_SANDBOX : !known;
    },
  ],
  ["abs/1", ofNumber(Math.abs)],
  ["floor/1", ofNumber(Math.floor)],
  ["ceil/1", ofNumber(Math.ceil)],
  ["round/1", (value) => (typeof value === "number" ? round(value, 0) : NEEDS_SANDBOX)],
  [
    "round/2",
    (value, precision) =>
      typeof value === "number" &&
      typeof precision === "number" &&
      Number.isInteger(precision) &&
      Math.abs(precision) < 100
        ? round(value, precision)
        : NEEDS_SANDBOX,
  ],
  ["uppercase/1", ofText((text) => text.toUpperCase())],
  ["lowercase/1", ofText((text) => text.toLowerCase())],
  [
    "trim/1",
    ofText((text) =>
      text
        .replaceAll(/[ \t\n\r]+/g, " ")
        .replace(/^ /, "")
        .replace(/ $/, ""),
    ),
  ],
  ["length/1", ofText((text) => Array.from(text).length)],
  ["contains/2", ofTexts((text, other) => text.includes(other))],
  [
    "substringBefore/2",
    ofTexts((text, other) => (text.includes(other) ? cut(text, 0, text.indexOf(other)) : text)),
  ],
  [
    "substringAfter/2",
    ofTexts((text, other) => (text.includes(other) ? cut(text, text.indexOf(other) + other.length) : text)),
  ],
]);
