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
