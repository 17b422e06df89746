import { openApiDocument } from "#contract/openapi.ts";

/** `openapi/openapi.json`, from the schemas of `src/contract/`. */
export async function openApiJson(): Promise<string> {
  return `${JSON.stringify(openApiDocument(), null, 2)}\n`;
}
