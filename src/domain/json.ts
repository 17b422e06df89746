/** Any JSON value. Objects that hold callers' names are made with `Object.create(null)`, so that `__proto__` is an ordinary name. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
