import type { Json } from "#domain/json.ts";
import { skipLiteral } from "./skip-literal.ts";

/** A part of a template: literal text or an expression. */
export type TemplatePart =
  | string
  | {
      readonly expression: string;
      /** Where the expression begins in the template, in UTF-16 units. */
      readonly offset: number;
    };

export type ParsedTemplate =
  | { readonly ok: true; readonly parts: readonly TemplatePart[] }
  | { readonly ok: false; readonly message: string; readonly position: number };

const OPEN = "{{";

/** Whether a string contains an expression and has to be parsed. */
export function holdsExpression(text: string): boolean {
  return text.includes(OPEN);
}

/**
 * Splits `a {{ expr }} b` (docs/blueprints.md#expressions). An expression may hold `}}` in strings, names, comments, regular expressions
 * and between braces of its own. A literal `{{` is written `{{ "{{" }}`.
 */
export function parseTemplate(text: string): ParsedTemplate {
  const parts: TemplatePart[] = [];
  let at = 0;
  for (let open = text.indexOf(OPEN); open !== -1; open = text.indexOf(OPEN, at)) {
    if (open > at) parts.push(text.slice(at, open));
    const start = open + OPEN.length;
    const end = endOfExpression(text, start);
    if (end === -1) {
      return {
        ok: false,
        message: '{{ is never closed (a literal one is written {{ "{{" }})',
        position: open,
      };
    }
    const inside = text.slice(start, end);
    const expression = inside.trim();
    if (expression === "") return { ok: false, message: "{{ }} contains no expression", position: open };
    parts.push({ expression, offset: start + inside.length - inside.trimStart().length });
    at = end + OPEN.length;
  }
  if (at < text.length || parts.length === 0) parts.push(text.slice(at));
  return { ok: true, parts };
}

/** The offset of the `}}` that closes an expression, or -1. */
function endOfExpression(text: string, start: number): number {
  let braces = 0;
  for (let index = start; index < text.length; index++) {
    const next = skipLiteral(text, start, index);
    if (next > index) {
      index = next - 1;
    } else if (text[index] === "{") {
      braces++;
    } else if (text[index] === "}") {
      if (braces === 0) return text[index + 1] === "}" ? index : -1;
      braces--;
    }
  }
  return -1;
}

/**
 * The text of a template, given the `values` of its expressions in order. Inserted text is never parsed again. `encode` is
 * applied to each inserted text (`encodeURIComponent` for a URL, for example), never to the template's own.
 */
export function renderParts(
  parts: readonly TemplatePart[],
  values: readonly (Json | undefined)[],
  encode: (text: string) => string = (text) => text,
): string {
  let index = 0;
  return parts
    .map((part) => (typeof part === "string" ? part : encode(insertedText(values[index++]))))
    .join("");
}

/** Inside a longer string: a string unchanged, no value as the empty string, anything else as JSON text. */
function insertedText(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
