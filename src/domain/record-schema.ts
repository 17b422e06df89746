import type { Ajv2020, ErrorObject, ValidateFunction } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";
import { isJsonObject, type Json } from "./json.ts";
import { openAjvWithFormats } from "./open-ajv.ts";
import type { RecordError } from "./record.ts";

/** A JSON Schema (2020-12) of an author, compiled: of an INPUT or a `validate` node. */
export interface AuthorSchema {
  /** Every violation, at most `ERRORS_MAX`. `field` is a dot path or null; messages never contain a value of the data. */
  validate(value: Json): readonly RecordError[];
}

export type CompiledAuthorSchema = AuthorSchema | { readonly problem: string };

const ERRORS_MAX = 100;
const CACHED_MAX = 200;

/** Only validates schemas: compiling the meta schemas takes 40 ms, so there is one shared instance. */
let metaSchemas: Ajv2020 | null = null;

const compiled = new Map<string, CompiledAuthorSchema>();

/** Compiles a schema, or returns its problem. Compiled schemas are cached. */
export function compileAuthorSchema(schema: Json): CompiledAuthorSchema {
  const key = JSON.stringify(schema);
  const known = compiled.get(key);
  // Re-inserted at each use, so that the first entry of the map is the least recently used.
  if (known) compiled.delete(key);
  const result = known ?? compile(schema);
  compiled.set(key, result);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= CACHED_MAX) break;
    compiled.delete(oldest);
  }
  return result;
}

function compile(schema: Json): CompiledAuthorSchema {
  if (!isJsonObject(schema)) return { problem: "a schema must be an object (JSON Schema 2020-12)" };
  try {
    metaSchemas ??= openAjvWithFormats({ strict: false, logger: false });
    if (metaSchemas.validateSchema({ ...schema }) !== true) {
      const error = metaSchemas.errors?.[0];
      return {
        problem: `not a JSON Schema (2020-12): ${error?.instancePath || "the schema"} ${error?.message ?? "is invalid"}`,
      };
    }
    // One instance per schema, so that a schema can't reach parts of another author's schema (an `$id`, a compiled pattern).
    const ajv = openAjvWithFormats({
      allErrors: true,
      strictSchema: true,
      strictTypes: false,
      strictTuples: false,
      validateSchema: false,
      meta: false,
      logger: false,
      code: { regExp: linearRegExp },
    });
    ajv.removeKeyword("uniqueItems");
    ajv.addKeyword({
      keyword: "uniqueItems",
      type: "array",
      schemaType: "boolean",
      validate: (wanted: boolean, items: readonly Json[]) =>
        !wanted || new Set(items.map(canonical)).size === items.length,
      error: { message: "must not have duplicate items" },
    });
    return authorSchema(ajv.compile(schema));
  } catch (error) {
    // Ajv's and re2js's messages refer only to the schema, which is the author's own text.
    return {
      problem: `the JSON Schema does not compile: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

function authorSchema(check: ValidateFunction): AuthorSchema {
  return {
    validate: (value) => {
      try {
        if (check(value)) return [];
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        return [{ field: null, code: "schema", message: "is nested too deeply for its schema" }];
      }
      return (check.errors ?? []).slice(0, ERRORS_MAX).map(recordError);
    },
  };
}

function recordError(error: ErrorObject): RecordError {
  const path = error.instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  // docs/nodes/validate.md: the field of a missing property is that property, not the object that lacks it.
  const parameters: Record<string, unknown> = error.params;
  for (const name of ["missingProperty", "additionalProperty", "unevaluatedProperty", "propertyName"]) {
    const property = parameters[name];
    if (typeof property !== "string") continue;
    path.push(property);
    break;
  }
  return {
    field: path.length === 0 ? null : path.join("."),
    code: error.keyword,
    message: error.message ?? "is not valid",
  };
}

/**
 * Patterns in linear time. Ajv keys compiled patterns by their `toString`, so without one of its own
 * every pattern would silently be the first one.
 */
function linearRegExp(pattern: string, flags: string): { test(text: string): boolean; toString(): string } {
  let regExp: RE2JS;
  try {
    regExp = RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch {
    throw new Error(
      `pattern ${JSON.stringify(pattern)} is not supported (patterns run in linear time: no look-ahead, no back-references)`,
    );
  }
  return { test: (text) => regExp.test(text), toString: () => `/${pattern}/${flags}` };
}
linearRegExp.code = "linearRegExp";

/** The same text for equal values, in any order of their keys. Ajv's own `uniqueItems` is quadratic. */
function canonical(value: Json): string {
  return JSON.stringify(value, (_key, part: Json) =>
    isJsonObject(part) ? Object.fromEntries(Object.entries(part).sort(byKey)) : part,
  );
}

function byKey(left: readonly [string, unknown], right: readonly [string, unknown]): number {
  return left[0] < right[0] ? -1 : left[0] > right[0] ? 1 : 0;
}
