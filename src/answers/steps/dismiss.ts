import { clickAway } from "#answers/browser/click-away.ts";
import { defineStep, onElement } from "#answers/browser/define-step.ts";
import { describeLocator, locatorFindings, type LocatorConfig } from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";

export const dismiss = defineStep<LocatorConfig>({
  kind: "dismiss",
  description: "From here on, clicks this element away whenever it appears, such as a consent banner.",
  example: "- dismiss: { role: button, name: Accept all }",
  more:
    "The element need not exist: the step itself waits for nothing. It is clicked before another step uses the page.\n\n" +
    "What a login dismisses, the `browser` nodes with its session dismiss from their first step on: a login can be over before the banner " +
    "appears. The exceptions are a `dismiss` inside of another step and one with a template.",
  schema: (terms) => onElement(terms),
  check: (config, path) => locatorFindings(config as unknown as JsonObject, path),
  describe: describeLocator,
  run: async (run, config) => await clickAway(run.page, await run.find(config), run.timeoutMs),
});
