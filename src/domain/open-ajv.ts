import { createRequire } from "node:module";
import type { Ajv2020 } from "ajv/dist/2020.js";
import type { FormatsPlugin } from "ajv-formats";

const load = createRequire(import.meta.url);

/** A new Ajv of JSON Schema 2020-12. Loaded at the first use: its 84 modules were a twentieth of a start. */
export function openAjv(options: ConstructorParameters<typeof Ajv2020>[0]): Ajv2020 {
  const ajv = load("ajv/dist/2020.js") as { readonly Ajv2020: typeof Ajv2020 };
  return new ajv.Ajv2020(options);
}

/** The same with the standard's formats. */
export function openAjvWithFormats(options: ConstructorParameters<typeof Ajv2020>[0]): Ajv2020 {
  const ajv = openAjv(options);
  const addFormats = (load("ajv-formats") as { readonly default: FormatsPlugin }).default;
  addFormats(ajv as Parameters<FormatsPlugin>[0]);
  return ajv;
}
