import { freezeIntrinsics } from "#lib/freeze-intrinsics.ts";
import { measure } from "./json-text.ts";
import { refuse } from "./refusal.ts";

/**
 * Prepares the expression thread before anything of an author's runs in it (docs/decisions/0016). After it
 * - no expression can change what a later one meets: intrinsics are frozen, and there is no `__proto__` accessor, so
 *   that `__proto__` in data is a key like any other;
 * - no single step makes a text or list so large that V8 ends the whole process: its memory limit for a thread
 *   stops a thread that fills up by and by, and fails the process on one allocation far over the limit.
 */
export function hardenThread(limits: { readonly charactersMax: number; readonly itemsMax: number }): void {
  limitSizes(limits.charactersMax, limits.itemsMax);
  // jsonata takes a stack trace for each of its errors and nobody reads it.
  Error.stackTraceLimit = 0;
  Reflect.deleteProperty(Object.prototype, "__proto__");
  freezeIntrinsics();
}

/** The few built-in methods by which jsonata multiplies sizes: `&`, `$join`, `$pad`, `$split`, `$string`. */
function limitSizes(charactersMax: number, itemsMax: number): void {
  const tooLong = `makes a text of more than ${charactersMax} characters`;
  wrapMethod(String.prototype, "concat", (text: string, others: string[], concat) => {
    let length = text.length;
    for (const other of others) length += other.length;
    if (length > charactersMax) refuse(tooLong);
    return concat(others);
  });
  wrapMethod(
    String.prototype,
    "split",
    (_text: string, [separator, limit = Infinity]: [string, number?], split) => {
      const parts = split([separator, Math.min(limit, itemsMax + 1)]) as string[];
      if (parts.length > itemsMax) refuse(`makes a list of more than ${itemsMax} items`);
      return parts;
    },
  );
  wrapMethod(Array.prototype, "join", (items: unknown[], [separator = ","]: [string?], join) => {
    let length = separator.length * Math.max(0, items.length - 1);
    if (length > charactersMax) refuse(tooLong);
    for (const item of items) if (typeof item === "string") length += item.length;
    if (length > charactersMax) refuse(tooLong);
    return join([separator]);
  });
  wrapMethod(JSON, "stringify", (_json: JSON, given: [unknown, ...unknown[]], stringify) => {
    measure(given[0], charactersMax);
    return stringify(given);
  });
}

/** Replaces a method by one that gets `this`, the arguments and the original, and may refuse. */
function wrapMethod<This, Given extends unknown[]>(
  owner: object,
  name: string,
  wrapped: (self: This, given: Given, original: (given: unknown[]) => unknown) => unknown,
): void {
  const original = Reflect.get(owner, name) as (...given: unknown[]) => unknown;
  const value = function (this: This, ...given: Given): unknown {
    return wrapped(this, given, (passed) => Reflect.apply(original, this, passed));
  };
  Object.defineProperty(owner, name, { value, writable: true, enumerable: false, configurable: true });
}
