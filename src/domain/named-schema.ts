import type { TSchema, TUnsafe } from "typebox";
import { Type } from "#lib/type.ts";
import type { ConfigPath } from "./config-problem.ts";
import { isJsonObject, type Json } from "./json.ts";

/** The annotation of a reference: the name of the schema in `latchkey schema`. */
export const NAMED = "x-named";
const REFERS = "~refers";

type Schema = Readonly<Record<string, unknown>>;

/**
 * A reference to a schema of objects that contains itself, such as a list of steps inside of a step. JSON Schema's own `$ref` would
 * need one root for all schemas; ours are compiled each by itself.
 */
export function namedSchema<T>(name: string, schema: () => TSchema, options: object = {}): TUnsafe<T> {
  const reference = { type: "object", [NAMED]: name, ...options };
  Object.defineProperty(reference, REFERS, { value: schema, enumerable: false });
  return Type.Unsafe<T>(reference as unknown as TSchema);
}

/** The schema that a reference names; undefined for any other schema. */
export function schemaNamedBy(schema: object): TSchema | undefined {
  const refers = (schema as Schema)[REFERS];
  return typeof refers === "function" ? (refers as () => TSchema)() : undefined;
}

interface NamedPart {
  readonly schema: TSchema;
  readonly value: Json;
  readonly path: ConfigPath;
}

/** Every part of a value for which its schema has a reference, at any depth, with the schema that it must satisfy. */
export function* findNamedParts(schema: object, value: Json, path: ConfigPath): Generator<NamedPart> {
  const named = schemaNamedBy(schema);
  if (named !== undefined) {
    if (isJsonObject(value)) yield { schema: named, value, path };
    yield* findNamedParts(named, value, path);
    return;
  }
  const { items, properties } = schema as Schema;
  if (Array.isArray(value) && isSchema(items))
    for (const [index, item] of value.entries()) yield* findNamedParts(items, item as Json, [...path, index]);
  if (!isJsonObject(value) || !isSchema(properties)) return;
  for (const [key, part] of Object.entries(value)) {
    const own = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (isSchema(own)) yield* findNamedParts(own, part, [...path, key]);
  }
}

/** Every schema that a schema refers to, by name, at any depth. */
export function listNamedSchemas(
  schema: object,
  found: Map<string, TSchema> = new Map(),
): ReadonlyMap<string, TSchema> {
  const named = schemaNamedBy(schema);
  const name = (schema as Schema)[NAMED];
  if (named !== undefined && typeof name === "string" && !found.has(name)) {
    found.set(name, named);
    listNamedSchemas(named, found);
  }
  const { items, properties } = schema as Schema;
  for (const part of [items, ...(isSchema(properties) ? Object.values(properties) : [])])
    if (isSchema(part)) listNamedSchemas(part, found);
  return found;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
