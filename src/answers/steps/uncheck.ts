import { defineStep, onElement } from "#answers/browser/define-step.ts";
import {
  describeLocator,
  locatorFindings,
  locatorPart,
  type LocatorConfig,
} from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";

export const uncheck = defineStep<LocatorConfig>({
  kind: "uncheck",
  description: "Clears a checkbox, unless it is already.",
  example: "- uncheck: { label: Send me news }",
  schema: (terms) => onElement(terms),
  check: (config, path) => locatorFindings(config as unknown as JsonObject, path),
  describe: (config) => describeLocator(locatorPart(config as never)),
  run: async (run, config) => await (await run.find(config)).uncheck({ timeout: run.timeoutMs }),
});
