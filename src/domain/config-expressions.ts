import type { TSchema } from "typebox";
import { matchesSchema } from "./matches-schema.ts";
import type { ConfigPath } from "./config-problem.ts";
import { EXPRESSION, TEMPLATE, type ExpressionScopeKind } from "./expression.ts";
import { isJsonObject, type Json } from "./json.ts";
import { schemaNamedBy } from "./named-schema.ts";

/** A part of a document that holds expressions. */
export type ExpressionPlace =
  /** `source` is one bare expression. */
  | {
      readonly form: "expression";
      readonly path: ConfigPath;
      readonly scope: ExpressionScopeKind;
      readonly source: string;
    }
  /** `template` holds `{{ expr }}` in strings at any depth. */
  | {
      readonly form: "template";
      readonly path: ConfigPath;
      readonly scope: ExpressionScopeKind;
      readonly template: Json;
    };

/** The part of JSON Schema that TypeBox produces. */
type Schema = Readonly<Record<string, unknown>>;

/**
 * Every expression and template of a value, found by the annotations of its schema. Works on values that violate the schema,
 * too: it descends into every part of the expected type, and into the branches of a union that fit.
 */
export function findExpressions(
  schema: TSchema,
  value: Json,
  path: ConfigPath = [],
): readonly ExpressionPlace[] {
  return [...walk(schema as Schema, value, path)];
}

function* walk(schema: Schema, value: Json, path: ConfigPath): Generator<ExpressionPlace> {
  const named = schemaNamedBy(schema);
  if (named !== undefined) {
    yield* walk(named as Schema, value, path);
    return;
  }
  const bare = schema[EXPRESSION];
  if (typeof bare === "string" && typeof value === "string") {
    yield { form: "expression", path, scope: bare as ExpressionScopeKind, source: value };
    return;
  }
  const template = schema[TEMPLATE];
  if (typeof template === "string") {
    yield { form: "template", path, scope: template as ExpressionScopeKind, template: value };
    return;
  }
  for (const key of ["anyOf", "oneOf"]) {
    for (const branch of listOf(schema[key]))
      if (matchesSchema(branch as TSchema, value)) yield* walk(branch, value, path);
  }
  for (const part of listOf(schema["allOf"])) yield* walk(part, value, path);
  if (Array.isArray(value)) yield* walkItems(schema, value, path);
  else if (isJsonObject(value)) yield* walkProperties(schema, value, path);
}

function* walkItems(schema: Schema, value: readonly Json[], path: ConfigPath): Generator<ExpressionPlace> {
  const first = listOf(schema["prefixItems"]);
  for (const [index, item] of value.entries()) {
    const itemSchema = first[index] ?? schema["items"];
    if (isSchema(itemSchema)) yield* walk(itemSchema, item, [...path, index]);
  }
}

function* walkProperties(
  schema: Schema,
  value: { readonly [key: string]: Json },
  path: ConfigPath,
): Generator<ExpressionPlace> {
  const properties = isSchema(schema["properties"]) ? schema["properties"] : {};
  const patterns = Object.entries(isSchema(schema["patternProperties"]) ? schema["patternProperties"] : {});
  for (const [key, part] of Object.entries(value)) {
    const own = Object.hasOwn(properties, key) ? properties[key] : undefined;
    const matching = patterns
      .filter(([pattern]) => new RegExp(pattern, "u").test(key))
      .map(([, each]) => each);
    const found = [own, ...matching].filter(isSchema);
    const schemas = found.length > 0 ? found : [schema["additionalProperties"]].filter(isSchema);
    for (const each of schemas) yield* walk(each, part, [...path, key]);
  }
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function listOf(value: unknown): readonly Schema[] {
  return Array.isArray(value) ? value.filter(isSchema) : [];
}
