import type { Static, TSchema } from "typebox";
import { matchesSchema } from "./matches-schema.ts";
import { assert } from "#lib/assert.ts";
import type { JsonObject } from "./json.ts";

// Configs of stored versions are read for every run. One that was checked remains valid.
const checked = new WeakMap<JsonObject, TSchema>();

/** The config with the type of its schema. `apply` has checked it: a mismatch here is a bug in the service, not a mistake of the author. */
export function readConfig<Schema extends TSchema>(schema: Schema, config: JsonObject): Static<Schema> {
  const value: unknown = config;
  if (checked.get(config) === schema) return value as Static<Schema>;
  assert(matchesSchema(schema, value), "a checked config satisfies the schema of its type");
  checked.set(config, schema);
  return value;
}
