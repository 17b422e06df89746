import { refuse } from "./refusal.ts";

/** Taken before `harden.ts` replaces it by one that measures. */
const stringify = JSON.stringify;

const DEPTH_MAX = 1_000;

interface Walk {
  readonly charactersMax: number;
  left: number;
  /** Whether anything but JSON is refused; undefined is what JSON leaves out. */
  readonly strict: boolean;
}

/** Refuses a value whose JSON text would be longer than about `charactersMax`; what is shared counts each time. */
export function measure(value: unknown, charactersMax: number): void {
  walk(value, 0, { charactersMax, left: charactersMax, strict: false });
}

/**
 * The JSON text of an evaluation's result; undefined if it gives nothing. Refuses functions, numbers that aren't
 * finite, values that hold themselves and those of more than about `charactersMax` characters.
 */
export function jsonText(value: unknown, charactersMax: number): string | undefined {
  if (value === undefined) return undefined;
  walk(value, 0, { charactersMax, left: charactersMax, strict: true });
  return stringify(value);
}

function walk(value: unknown, depth: number, state: Walk): void {
  state.left -= typeof value === "string" ? value.length + 3 : 3;
  if (state.left < 0) refuse(`makes a value of more than ${state.charactersMax} characters of JSON`);
  if (state.strict) {
    if (typeof value === "number" && !Number.isFinite(value)) refuse("gives a number that JSON can't hold");
    if (isFunction(value)) refuse("gives a function, not a value");
  }
  if (typeof value !== "object" || value === null) return;
  if (depth > DEPTH_MAX) refuse(`makes a value of more than ${DEPTH_MAX} levels, or one that holds itself`);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) walk(value[index], depth + 1, state);
    return;
  }
  for (const key of Object.keys(value)) {
    state.left -= key.length + 3;
    walk((value as Record<string, unknown>)[key], depth + 1, state);
  }
}

/** As jsonata tells it: by marks, so that data with a key of that name counts as a function everywhere. */
function isFunction(value: unknown): boolean {
  if (typeof value === "function") return true;
  if (typeof value !== "object" || value === null) return false;
  return Reflect.get(value, "_jsonata_function") === true || Reflect.get(value, "_jsonata_lambda") === true;
}
