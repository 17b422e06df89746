import { html as template, raw } from "hono/html";
import { assert } from "./assert.ts";

/** HTML text: made by `html`, or declared safe with `raw`. */
export type Html = ReturnType<typeof raw>;

/** Values in a template. Text is escaped, HTML is not; null, undefined and false render as nothing. */
export type HtmlPart = string | number | false | null | undefined | Html | readonly HtmlPart[];

/** The escaping template tag. */
export function html(strings: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  const made = template(strings, ...parts);
  assert(!(made instanceof Promise), "a template must not contain a promise");
  return made;
}

export { raw };
