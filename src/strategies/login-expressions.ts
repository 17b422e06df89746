import { shorten } from "#domain/config-problem.ts";
import { ExpressionError, type BoundExpressions, type Scope } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { LoginFailure } from "./define-login.ts";

/** Variables that earlier steps extracted, by name. */
export type Variables = { readonly [name: string]: Json };

/** Renders a template; a LoginFailure names the place when one of its expressions fails. */
export function renderAt(
  expressions: BoundExpressions,
  place: string,
  template: Json,
  scope?: Scope,
): Promise<Json | undefined> {
  return failAt(place, () => expressions.render(template, scope));
}

/** Evaluates a bare expression; a LoginFailure names the place when it fails. */
export function evaluateAt(
  expressions: BoundExpressions,
  place: string,
  source: string,
  scope?: Scope,
): Promise<Json | undefined> {
  return failAt(place, () => expressions.evaluate(source, scope));
}

/** A condition must be true, false or without a value; anything else is probably a mistake. */
export async function isTrueAt(
  expressions: BoundExpressions,
  place: string,
  source: string,
  scope?: Scope,
): Promise<boolean> {
  const value = await evaluateAt(expressions, place, source, scope);
  if (value === undefined || value === null) return false;
  if (typeof value === "boolean") return value;
  throw new LoginFailure(`${place} must evaluate to true or false; write a comparison, or \`$boolean(…)\``);
}

/** `$credential` is in scope here, so the evaluator's message might quote a secret. Only the author's text is shown. */
async function failAt<T>(place: string, evaluate: () => Promise<T>): Promise<T> {
  try {
    return await evaluate();
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw new LoginFailure(`${place}: the expression \`${shorten(error.source, 200)}\` failed`);
  }
}
