import { freezeIntrinsics } from "#lib/freeze-intrinsics.ts";
import { measure } from "./json-text.ts";
import { refuse } from "./refusal.ts";

/**
 * Prepares the expression thread before an author's code runs in it (docs/decisions/0016). Afterwards:
 * - no expression can affect a later one: intrinsics are frozen, and there is no `__proto__` accessor, so `__proto__` in data
 *   is an ordinary key;
 * - no single step creates a string or list so large that V8 ends the whole process. V8's memory limit stops a thread that
 *   grows gradually, but a single allocation far above the limit fails the process.
 */
export function hardenThread(limits: { readonly charactersMax: number; readonly itemsMax: number }): void {
  limitSizes(limits.charactersMax, limits.itemsMax);
  // jsonata captures a stack trace for each of its errors, which is never used.
  Error.stackTraceLimit = 0;
  Reflect.deleteProperty(Object.prototype, "__proto__");
  freezeIntrinsics();
}

/** Limits the built-in methods by which jsonata can multiply sizes: `&`, `$join`, `$pad`, `$split`, `$string`. */
function limitSizes(charactersMax: number, itemsMax: number): void {
  const tooLong = `produces a string of more than ${charactersMax} characters`;
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
      if (parts.length > itemsMax) refuse(`produces a list of more than ${itemsMax} items`);
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

/** Replaces a method with one that receives `this`, the arguments and the original, and may throw. */
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
