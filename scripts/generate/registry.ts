import { configurationPage } from "./configuration.ts";
import { lintConfig } from "./lint-config.ts";
import { architecturePage } from "./layer-diagram.ts";
import { openApiJson } from "./openapi.ts";
import { schemaSql } from "./schema.ts";

/** A committed file that a script writes. */
export type Generated = {
  /** Relative to the repository's root. */
  path: string;
  /** The whole text of the file; undefined means that there is nothing to write. Must not depend on time or machine. */
  content: () => Promise<string | undefined>;
};

export const ROOT = new URL("../../", import.meta.url);

/** To add a generated file: one small module in this folder that makes its text, and one line here. */
export const GENERATED: readonly Generated[] = [
  { path: ".oxlintrc.json", content: lintConfig },
  { path: "ARCHITECTURE.md", content: () => architecturePage(ROOT) },
  { path: "docs/configuration.md", content: configurationPage },
  { path: "openapi.json", content: openApiJson },
  { path: "schema.sql", content: () => schemaSql(ROOT) },
];
