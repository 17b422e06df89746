import { operatorDocument } from "./operator-document.ts";

/** `openapi/operator-openapi.json`, from the schemas of `src/contract/operator/`. */
export async function operatorOpenApiJson(): Promise<string> {
  return `${JSON.stringify(operatorDocument(), null, 2)}\n`;
}
