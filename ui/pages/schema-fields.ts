import { wordsOf } from "../parts/words-of.ts";

/** A property of a JSON Schema that one field of a form can take. */
export interface SchemaField {
  readonly name: string;
  readonly label: string;
  readonly about: string | null;
  readonly kind: "text" | "number" | "boolean" | "date" | "choice";
  /** Only of a choice. */
  readonly options: readonly string[];
  readonly isRequired: boolean;
}

type Schema = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

/** The fields of an object's schema; null: it is none, or has a property that needs more than a field. */
export function fieldsOfSchema(schema: unknown): readonly SchemaField[] | null {
  if (!isObject(schema) || schema["type"] !== "object" || !isObject(schema["properties"])) return null;
  const required = Array.isArray(schema["required"]) ? (schema["required"] as readonly unknown[]) : [];
  const fields: SchemaField[] = [];
  for (const [name, property] of Object.entries(schema["properties"])) {
    const kind = kindOf(property);
    if (kind === null || !isObject(property)) return null;
    fields.push({
      name,
      label: textOf(property["title"]) ?? wordsOf(name),
      about: textOf(property["description"]),
      kind,
      options: kind === "choice" ? (property["enum"] as readonly string[]) : [],
      isRequired: required.includes(name),
    });
  }
  return fields.length === 0 ? null : fields;
}

function kindOf(property: unknown): SchemaField["kind"] | null {
  if (!isObject(property)) return null;
  const { type, enum: options, format } = property;
  if (Array.isArray(options)) return options.every((each) => typeof each === "string") ? "choice" : null;
  if (type === "string") return format === "date" ? "date" : "text";
  if (type === "boolean") return "boolean";
  return type === "number" || type === "integer" ? "number" : null;
}

/** The values of the fields in a JSON text; none, if it is not that of an object. */
export function valuesOfJson(fields: readonly SchemaField[], json: string): Readonly<Record<string, string>> {
  let read: unknown;
  try {
    read = JSON.parse(json);
  } catch {
    return {};
  }
  if (!isObject(read)) return {};
  const entries = fields.flatMap(({ name }): [string, string][] => {
    const value = read[name];
    return ["string", "number", "boolean"].includes(typeof value)
      ? [[name, `${value as string | number | boolean}`]]
      : [];
  });
  return Object.fromEntries(entries);
}

/** What is typed into the fields as JSON; empty: nothing is. Text that is no number stays text, for the service to refuse. */
export function jsonOfFields(
  fields: readonly SchemaField[],
  values: Readonly<Record<string, string>>,
): string {
  const filled = fields.flatMap(({ name, kind }): [string, unknown][] => {
    const value = values[name] ?? "";
    if (value === "") return [];
    if (kind === "boolean") return [[name, value === "true"]];
    return [[name, kind === "number" && Number.isFinite(Number(value)) ? Number(value) : value]];
  });
  return filled.length === 0 ? "" : JSON.stringify(Object.fromEntries(filled));
}
