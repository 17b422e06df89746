import { createHash } from "node:crypto";
import { isJsonObject, type Json } from "#domain/json.ts";

/**
 * A total order over JSON: null, false, true, numbers by value, strings by their UTF-16 code units (as RFC 8785 orders names),
 * lists item by item, objects as lists of their fields in the order of their names. A prefix comes before the longer value.
 */
export function compareJson(left: Json, right: Json): number {
  const rank = rankOf(left) - rankOf(right);
  if (rank !== 0) return rank;
  if (isList(left) && isList(right)) return compareLists(left, right);
  if (isJsonObject(left) && isJsonObject(right)) return compareLists(fieldsOf(left), fieldsOf(right));
  // Same rank: two numbers, two strings, or the same constant.
  return compareUnits(left as string | number, right as string | number);
}

/** A digest that is the same for equal JSON, regardless of the order of fields, and different for any other. */
export function digestJson(json: Json): string {
  return createHash("sha256").update(canonical(json)).digest("base64");
}

function compareLists(left: readonly Json[], right: readonly Json[]): number {
  for (const [index, item] of left.entries()) {
    const other = right[index];
    if (other === undefined) return 1;
    const order = compareJson(item, other);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

function rankOf(json: Json): number {
  if (json === null) return 0;
  if (json === false) return 1;
  if (json === true) return 2;
  if (typeof json === "number") return 3;
  if (typeof json === "string") return 4;
  return isList(json) ? 5 : 6;
}

const isList = (json: Json): json is readonly Json[] => Array.isArray(json);

const compareUnits = (left: string | number, right: string | number): number =>
  left < right ? -1 : left > right ? 1 : 0;

function fieldsOf(json: { readonly [name: string]: Json }): readonly (readonly [string, Json])[] {
  return Object.entries(json).sort(([left], [right]) => compareUnits(left, right));
}

function canonical(json: Json): string {
  return JSON.stringify(json, (_name, part: Json) =>
    isJsonObject(part) ? Object.fromEntries(fieldsOf(part)) : part,
  );
}
