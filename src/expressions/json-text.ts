import { refuse } from "./refusal.ts";

/** The original, saved before `harden.ts` replaces it with a version that checks sizes. */
const stringify = JSON.stringify;

const DEPTH_MAX = 1_000;

interface Walk {
  readonly charactersMax: number;
  left: number;
  /** Whether values that are not JSON are rejected. JSON omits undefined. */
  readonly strict: boolean;
}

/** Rejects a value whose JSON text would be longer than about `charactersMax`. Shared parts count each time. */
export function measure(value: unknown, charactersMax: number): void {
  walk(value, 0, { charactersMax, left: charactersMax, strict: false });
}

/**
 * The JSON text of an evaluation's result; undefined if there is none. Rejects functions, numbers that aren't finite, circular
 * values and values of more than about `charactersMax` characters.
 */
export function jsonText(value: unknown, charactersMax: number): string | undefined {
  if (value === undefined) return undefined;
  walk(value, 0, { charactersMax, left: charactersMax, strict: true });
  return stringify(value);
}

function walk(value: unknown, depth: number, state: Walk): void {
  state.left -= typeof value === "string" ? value.length + 3 : 3;
  if (state.left < 0) refuse(`produces a value of more than ${state.charactersMax} characters of JSON`);
  if (state.strict) {
    if (typeof value === "number" && !Number.isFinite(value))
      refuse("produces a number that JSON can't represent");
    if (isFunction(value)) refuse("produces a function instead of a value");
  }
  if (typeof value !== "object" || value === null) return;
  if (depth > DEPTH_MAX)
    refuse(`produces a value that is circular or nested more than ${DEPTH_MAX} levels deep`);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) walk(value[index], depth + 1, state);
    return;
  }
  for (const key of Object.keys(value)) {
    state.left -= key.length + 3;
    walk((value as Record<string, unknown>)[key], depth + 1, state);
  }
}

/** Uses jsonata's own criterion, a marker key, so data with a key of that name counts as a function everywhere. */
function isFunction(value: unknown): boolean {
  if (typeof value === "function") return true;
  if (typeof value !== "object" || value === null) return false;
  return Reflect.get(value, "_jsonata_function") === true || Reflect.get(value, "_jsonata_lambda") === true;
}
