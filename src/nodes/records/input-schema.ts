import { isJsonObject, texts, type Json, type JsonObject } from "#domain/json.ts";

/** The parts of an INPUT's configuration that determine the valid values of its key in a trigger's body. */
export interface InputRules {
  readonly accepts: "text" | "json" | "file" | "any";
  /** Whether it is required and has no default. */
  readonly isNeeded: boolean;
  readonly schema: JsonObject | null;
}

const IS_STRING: JsonObject = { type: "string" };
const NOT_STRING: JsonObject = { not: { type: "string" } };

/**
 * The JSON Schema of an INPUT's key: it accepts every value that `checkInput` accepts, and rejects others as far as a schema can.
 * It can't check a string that contains JSON, nor treat a value as its JSON text. `authorSchema` replaces the author's own
 * schema.
 */
export function inputBodySchema(
  { accepts, isNeeded, schema }: InputRules,
  authorSchema: JsonObject,
): JsonObject {
  const isJsonText = accepts === "json" ? { contentMediaType: "application/json" } : {};
  if (schema === null) return isNeeded ? { ...isJsonText, not: { type: "null" } } : isJsonText;
  const takes: JsonObject[] = [];
  const ofStrings = takesStrings(schema);
  if (accepts === "text") takes.push({ allOf: [IS_STRING, authorSchema] });
  else if (accepts === "json" && ofStrings) takes.push({ allOf: [NOT_STRING, authorSchema] });
  else takes.push(authorSchema);
  if (accepts !== "text") {
    takes.push({
      description: "The same as JSON text.",
      type: "string",
      contentMediaType: "application/json",
      ...jsonTextPattern(schema),
    });
  }
  if (accepts !== "json" && ofStrings)
    takes.push({
      description: "A value that is not a string is also accepted as its JSON text.",
      ...NOT_STRING,
    });
  if (!isNeeded) takes.push({ type: "null" });
  return { anyOf: takes, ...(isNeeded ? { not: { type: "null" } } : {}) };
}

/** The most references in a chain; more are considered a cycle. */
const REFERENCES_MAX = 20;

/** Whether a string may satisfy the schema; true if that can't be determined. */
function takesStrings(
  schema: Json | undefined,
  root: Json | undefined = schema,
  left = REFERENCES_MAX,
): boolean {
  if (schema === false) return false;
  if (!isJsonObject(schema) || left === 0) return true;
  const { type, enum: values, anyOf, oneOf, allOf, $ref } = schema;
  const may = (part: Json | undefined): boolean => takesStrings(part, root, left - 1);
  if (type !== undefined && ![type, ...texts(type)].includes("string")) return false;
  if ("const" in schema && typeof schema["const"] !== "string") return false;
  if (Array.isArray(values) && !values.some((value) => typeof value === "string")) return false;
  if (typeof $ref === "string" && $ref.startsWith("#/") && !may(follow(root, $ref))) return false;
  if (Array.isArray(allOf) && !allOf.every(may)) return false;
  return [anyOf, oneOf].every((branches) => !Array.isArray(branches) || branches.some(may));
}

function follow(root: Json | undefined, reference: string): Json | undefined {
  return reference
    .slice(2)
    .split("/")
    .reduce<Json | undefined>(
      (at, name) => (isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined),
      root,
    );
}

const JSON_TEXTS: Readonly<Record<string, string>> = {
  object: String.raw`\{[\s\S]*\}`,
  array: String.raw`\[[\s\S]*\]`,
  string: String.raw`"[\s\S]*"`,
  number: String.raw`-?\d[\d.eE+-]*`,
  integer: String.raw`-?\d[\d.eE+-]*`,
  boolean: "true|false",
  null: "null",
};

/** A pattern for JSON text of the schema's types; no restriction if it names none. */
function jsonTextPattern({ type }: JsonObject): JsonObject {
  const types = typeof type === "string" ? [type] : texts(type);
  const patterns = types.flatMap((name) => JSON_TEXTS[name] ?? []);
  return patterns.length === 0 ? {} : { pattern: String.raw`^\s*(${[...new Set(patterns)].join("|")})\s*$` };
}
