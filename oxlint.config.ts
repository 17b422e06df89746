import { defineConfig } from "oxlint";
import { lintConfig } from "./scripts/lint-config.ts";

/** Run by the linter itself, on the command line and in editors (`oxlint --lsp`). The rules are in scripts/lint-config.ts. */
export default defineConfig(lintConfig());
