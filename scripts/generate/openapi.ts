import { readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { openApiDocument } from "./openapi-document.ts";
import { renderReference } from "./reference/page.ts";

/** `openapi/openapi.json`, from the schemas of `scripts/generate/public-api/`. */
export async function openApiJson(): Promise<string> {
  return `${JSON.stringify(openApiDocument(), null, 2)}\n`;
}

/** `openapi/reference.html`: the same for people, the page at `/docs`. */
export async function referencePage(): Promise<string> {
  return `${renderReference(openApiDocument()).toString()}\n`;
}

/** `openapi/reference.js`: what runs on that page. */
export async function referenceScript(root: URL): Promise<string> {
  const source = await readFile(new URL("src/hosted/browser/reference.ts", root), "utf8");
  return `// Written by \`npm run generate\` from src/hosted/browser/reference.ts.\n${stripTypeScriptTypes(source)}`;
}
