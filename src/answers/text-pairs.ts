import { isJsonObject, type Json } from "#domain/json.ts";

export type TextPairs = readonly (readonly [name: string, value: string])[];

/**
 * Names and values of a rendered `query`, `form` or `headers`. A list repeats its name; null and no value leave it out. For an
 * object, throws the error that `fail` creates.
 */
export function textPairs(
  rendered: Json | undefined,
  place: string,
  fail: (message: string) => Error,
): TextPairs {
  if (!isJsonObject(rendered)) return [];
  return Object.entries(rendered).flatMap(([name, value]) => {
    const values: readonly Json[] = Array.isArray(value) ? value : [value];
    return values
      .filter((each) => each !== null && each !== undefined)
      .map((each) => {
        if (typeof each === "object")
          throw fail(`${place}.${name} evaluates to an object; it must be text, a number, true or false`);
        return [name, String(each)] as const;
      });
  });
}
