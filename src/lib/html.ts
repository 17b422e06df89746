import { html as template, raw } from "hono/html";
import { assert } from "./assert.ts";

/** Text that is HTML already: made by `html`, or vouched for with `raw`. */
export type Html = ReturnType<typeof raw>;

/** What may stand in a template. Text is escaped, HTML is not; null, undefined and false leave nothing. */
export type HtmlPart = string | number | false | null | undefined | Html | readonly HtmlPart[];

/** The escaping template tag: a page is made at once, from values that are all there. */
export function html(strings: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  const made = template(strings, ...parts);
  assert(!(made instanceof Promise), "no promise stands in a template");
  return made;
}

export { raw };
