import { createRequire } from "node:module";
import type * as Yaml from "yaml";

const load = createRequire(import.meta.url);
let yaml: typeof Yaml | null = null;

/** The YAML library. Loaded at the first use: few processes read documents, and its 72 modules were a thirtieth of a start. */
export const openYaml = (): typeof Yaml => (yaml ??= load("yaml") as typeof Yaml);
