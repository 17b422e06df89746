import type { Static, TSchema } from "typebox";
import { Value } from "typebox/value";
import { assert } from "#lib/assert.ts";
import type { JsonObject } from "./json.ts";

/** The config with the type of its schema. `apply` has checked it: a mismatch here is a bug of ours, not of the author. */
export function readConfig<Schema extends TSchema>(schema: Schema, config: JsonObject): Static<Schema> {
  const value: unknown = config;
  assert(Value.Check(schema, value), "a checked config satisfies the schema of its type");
  return value;
}
