import type { Outcome } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { must } from "#lib/assert.ts";
import { NodeFailure } from "#nodes/define-node.ts";

/** The value of an outcome; `undefined`: the expression gives nothing. Throws NodeFailure that names the place. */
export function valueOf(outcome: Outcome | undefined, place: string): Json | undefined {
  const known = must(outcome, "the outcome of an expression");
  // The evaluator's messages hold the expression and the reason, and no value of the data.
  if (!known.ok) throw new NodeFailure(`${place}: ${known.message}`);
  return known.value;
}

/** The name of a value's kind, for messages: `a list`, `null`. */
export function kindOf(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "object") return Array.isArray(value) ? "a list" : "an object";
  return typeof value === "string" ? "a text" : "a number";
}
