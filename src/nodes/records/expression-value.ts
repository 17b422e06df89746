import type { Outcome } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { must } from "#lib/assert.ts";
import { NodeFailure } from "#nodes/define-node.ts";

/** The value of an outcome; `undefined`: the expression has no value. Throws NodeFailure with the place. */
export function valueOf(outcome: Outcome | undefined, place: string): Json | undefined {
  const known = must(outcome, "the outcome of an expression");
  // The evaluator's messages contain the expression and the reason, but no data.
  if (!known.ok) throw new NodeFailure(`${place}: ${known.message}`);
  return known.value;
}

/** The name of a value's kind, for messages: `a list`, `null`. */
export function kindOf(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "object") return Array.isArray(value) ? "a list" : "an object";
  return typeof value === "string" ? "a string" : "a number";
}
