import { defineStep, onElement } from "#answers/browser/define-step.ts";
import { describeLocator, locatorFindings, type LocatorConfig } from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";

export const dismiss = defineStep<LocatorConfig>({
  kind: "dismiss",
  description: "From here on, clicks this element away whenever it appears, such as a consent banner.",
  example: "- dismiss: { role: button, name: Accept all }",
  more: "The element need not exist: the step itself waits for nothing. It is clicked before another step uses the page.",
  schema: (terms) => onElement(terms),
  check: (config, path) => locatorFindings(config as unknown as JsonObject, path),
  describe: describeLocator,
  async run(run, config) {
    const element = await run.find(config);
    await run.page.addLocatorHandler(
      element.first(),
      async (found) => await found.click({ timeout: run.timeoutMs }).catch(() => {}),
      { noWaitAfter: true },
    );
  },
});
