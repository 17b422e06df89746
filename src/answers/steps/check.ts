import { defineStep, onElement } from "#answers/browser/define-step.ts";
import {
  describeLocator,
  locatorFindings,
  locatorPart,
  type LocatorConfig,
} from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";

export const check = defineStep<LocatorConfig>({
  kind: "check",
  description: "Ticks a checkbox or selects a radio button, unless it is already.",
  example: "- check: { label: Stay signed in }",
  schema: (terms) => onElement(terms),
  check: (config, path) => locatorFindings(config as unknown as JsonObject, path),
  describe: (config) => describeLocator(locatorPart(config as never)),
  run: async (run, config) => await (await run.find(config)).check({ timeout: run.timeoutMs }),
});
