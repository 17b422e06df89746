import { defineStep, onElement } from "#answers/browser/define-step.ts";
import {
  describeLocator,
  locatorFindings,
  locatorPart,
  type LocatorConfig,
} from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";

export const hover = defineStep<LocatorConfig>({
  kind: "hover",
  description: "Moves the mouse over an element, for menus that open by it.",
  example: "- hover: { role: button, name: Account }",
  schema: (terms) => onElement(terms),
  check: (config, path) => locatorFindings(config as unknown as JsonObject, path),
  describe: (config) => describeLocator(locatorPart(config as never)),
  run: async (run, config) => await (await run.find(config)).hover({ timeout: run.timeoutMs }),
});
