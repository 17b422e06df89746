import type { Type as TypeBox, TProperties, TSchema } from "typebox";

/**
 * The builders of JSON Schemas that we use from TypeBox, with its types and the same results, hidden properties included
 * (test/lib/type.test.ts compares them). Loading TypeBox itself for them would load 370 modules, an eighth of the start's CPU time.
 */
type Builders = Pick<
  typeof TypeBox,
  | "Array"
  | "Boolean"
  | "Enum"
  | "Integer"
  | "IsObject"
  | "Literal"
  | "Null"
  | "Object"
  | "Optional"
  | "Record"
  | "String"
  | "Union"
  | "Unknown"
  | "Unsafe"
>;

/** TypeBox marks schemas by properties that are not enumerable, so that they are JSON Schema all the same. */
const isHidden = { configurable: true, writable: true, enumerable: false } as const;

function schemaOf(kind: string, keywords: object, options: object = {}): object {
  return Object.defineProperty({ ...keywords, ...options }, "~kind", { ...isHidden, value: kind });
}

function marked(schema: object, mark: string, value: unknown): object {
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema));
  return Object.defineProperty(copy, mark, { ...isHidden, value });
}

function objectOf(properties: TProperties, options?: object): object {
  const required = Object.keys(properties).filter(
    (key) => !Object.hasOwn(properties[key] ?? {}, "~optional"),
  );
  return schemaOf(
    "Object",
    { type: "object", ...(required.length > 0 && { required }), properties },
    options,
  );
}

/** Of the key's schema, TypeBox keeps only the `pattern`. */
const recordOf = (key: TSchema & { readonly pattern?: string }, value: TSchema, options?: object): object =>
  schemaOf("Record", { type: "object", patternProperties: { [key.pattern ?? "^.*$"]: value } }, options);

const builders = {
  Array: (items: TSchema, options?: object) => schemaOf("Array", { type: "array", items }, options),
  Boolean: (options?: object) => schemaOf("Boolean", { type: "boolean" }, options),
  Enum: (values: readonly unknown[], options?: object) => schemaOf("Enum", { enum: values }, options),
  Integer: (options?: object) => schemaOf("Integer", { type: "integer" }, options),
  IsObject: (value: unknown) => (value as { "~kind"?: unknown } | null)?.["~kind"] === "Object",
  Literal: (value: unknown, options?: object) =>
    schemaOf("Literal", { type: typeof value, const: value }, options),
  Null: (options?: object) => schemaOf("Null", { type: "null" }, options),
  Object: objectOf,
  Optional: (schema: TSchema) => marked(schema, "~optional", true),
  Record: recordOf,
  String: (options?: object) => schemaOf("String", { type: "string" }, options),
  Union: (anyOf: readonly TSchema[], options?: object) => schemaOf("Union", { anyOf }, options),
  Unknown: (options?: object) => schemaOf("Unknown", {}, options),
  Unsafe: (schema: object) => marked(schema, "~unsafe", null),
};

export const Type = builders as unknown as Builders;
