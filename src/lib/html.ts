import { html as template, raw } from "hono/html";
import { assert } from "./assert.ts";

/** HTML text: made by `html`, or declared safe with `raw`. */
export type Html = ReturnType<typeof raw>;

/** Values in a template. Text is escaped, HTML is not; null, undefined and false render as nothing. */
export type HtmlPart = string | number | false | null | undefined | Html | readonly HtmlPart[];

const squeezed = new WeakMap<TemplateStringsArray, TemplateStringsArray>();

/** The template's own text, without the indentation of its lines, which would be a fifth of a page. Values stay as they are. */
function withoutIndentation(strings: TemplateStringsArray): TemplateStringsArray {
  const known = squeezed.get(strings);
  if (known) return known;
  const texts = strings.map((text) => text.replace(/\n\s*/g, "\n"));
  const made = Object.assign(texts, { raw: strings.raw });
  squeezed.set(strings, made);
  return made;
}

/** The escaping template tag. */
export function html(strings: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  const made = template(withoutIndentation(strings), ...parts);
  assert(!(made instanceof Promise), "a template must not contain a promise");
  return made;
}

export { raw };
