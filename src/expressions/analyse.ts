import { isJsonObject } from "#domain/json.ts";
import type { Json } from "#domain/json.ts";
import { compileExpression } from "./compile.ts";
import type { NotCompiled } from "./compile.ts";
import type { VariableUse } from "./free-variables.ts";
import { holdsExpression, parseTemplate } from "./template.ts";

export { BUILT_IN_FUNCTIONS } from "./built-in-functions.ts";
export type { VariableUse } from "./free-variables.ts";

export type Analysis = { readonly ok: true; readonly uses: readonly VariableUse[] } | NotCompiled;

/** One `{{ expr }}` of a template, or a string with unbalanced braces (then `expression` is the whole string). */
export interface TemplateExpression {
  /** The path from the template's root to the string. */
  readonly path: readonly (string | number)[];
  readonly expression: string;
  /** Where the expression begins in that string, in UTF-16 units. */
  readonly offset: number;
  readonly analysis: Analysis;
}

/** Compiles an expression and lists the variables that it reads (docs/decisions/0030). */
export function analyseExpression(source: string): Analysis {
  const compiled = compileExpression(source);
  return compiled.ok ? { ok: true, uses: compiled.uses } : compiled;
}

/** Every expression in a template, at any depth. Keys of objects are not templates. */
export function analyseTemplate(template: Json): readonly TemplateExpression[] {
  const found: TemplateExpression[] = [];
  const visit = (value: Json, path: readonly (string | number)[]): void => {
    if (typeof value === "string") found.push(...analyseString(value, path));
    else if (Array.isArray(value)) for (const [index, item] of value.entries()) visit(item, [...path, index]);
    else if (isJsonObject(value))
      for (const [key, item] of Object.entries(value)) visit(item, [...path, key]);
  };
  visit(template, []);
  return found;
}

function analyseString(text: string, path: readonly (string | number)[]): TemplateExpression[] {
  if (!holdsExpression(text)) return [];
  const parsed = parseTemplate(text);
  if (!parsed.ok) return [{ path, expression: text, offset: 0, analysis: parsed }];
  return parsed.parts
    .filter((part) => typeof part !== "string")
    .map(({ expression, offset }) => ({ path, expression, offset, analysis: analyseExpression(expression) }));
}
