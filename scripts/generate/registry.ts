import { embeddedPage, widgetTypes } from "./embedded-page.ts";
import { configurationPage } from "./configuration.ts";
import { dashboardOperations } from "./dashboard-operations.ts";
import type { Generated } from "./generated.ts";
import { mcpOperations } from "./mcp-operations.ts";
import { architecturePage } from "./layer-diagram.ts";
import { pythonClient, pythonTypes } from "./python-sdk.ts";
import { openApiJson, referencePage, referenceScript } from "./openapi.ts";
import { operatorOpenApiJson } from "./operator-openapi.ts";
import { schemaSql } from "./schema.ts";
import { sdkTypes } from "./sdk-types.ts";
import { stepPages } from "./step-pages.ts";
import { typePages } from "./type-pages.ts";

export const ROOT = new URL("../../", import.meta.url);

/** To add a generated file: one small module in this folder that makes its text, and one line here. */
export const GENERATED: readonly Generated[] = [
  { path: "ARCHITECTURE.md", isPart: true, content: () => architecturePage(ROOT) },
  { path: "docs/configuration.md", content: configurationPage },
  { path: "docs/embedded.md", isPart: true, content: () => embeddedPage(ROOT) },
  { path: "sdk/react/widget-types.ts", content: () => widgetTypes(ROOT) },
  { path: "openapi/openapi.json", content: openApiJson },
  { path: "openapi/reference.html", content: referencePage },
  { path: "openapi/reference.js", content: () => referenceScript(ROOT) },
  { path: "sdk/typescript/src/api-types.ts", content: sdkTypes },
  { path: "sdk/python/latchkey/_types.py", content: pythonTypes },
  { path: "sdk/python/latchkey/_client.py", content: () => pythonClient(ROOT) },
  ...typePages,
  ...stepPages,
  { path: "openapi/operator-openapi.json", content: operatorOpenApiJson },
  { path: "sdk/mcp/src/operations.ts", content: mcpOperations },
  { path: "ui/api/operations.ts", content: () => dashboardOperations(ROOT) },
  { path: "src/db/migrations/schema.sql", content: () => schemaSql(ROOT) },
];
