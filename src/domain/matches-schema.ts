import type { Ajv2020 } from "ajv/dist/2020.js";
import type { Static, TSchema } from "typebox";
import { openAjv } from "./open-ajv.ts";
import { plainCheck, type Check } from "./plain-schema.ts";

let ajv: Ajv2020 | null = null;
const compiled = new WeakMap<TSchema, Check>();

/**
 * Whether a value satisfies one of the service's schemas. Compiled at the first use; schemas are constants, so each is compiled once.
 * Our own schemas need no library (`plain-schema.ts`); Ajv checks those of operators' node types that have other keywords.
 */
export function matchesSchema<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  let check = compiled.get(schema);
  if (check === undefined) {
    check = plainCheck(schema) ?? checkByAjv(schema);
    compiled.set(schema, check);
  }
  return check(value);
}

function checkByAjv(schema: TSchema): Check {
  ajv ??= openAjv({
    strict: false,
    validateFormats: false,
    validateSchema: false,
    code: { optimize: false },
  });
  return ajv.compile(schema);
}
