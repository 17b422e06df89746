import { defineStep, onElement } from "#answers/browser/define-step.ts";
import {
  describeLocator,
  locatorFindings,
  locatorPart,
  type LocatorConfig,
} from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";
import { Type } from "#lib/type.ts";

interface ClickConfig extends LocatorConfig {
  readonly double?: boolean;
  readonly button?: "left" | "right" | "middle";
}

export const click = defineStep<ClickConfig>({
  kind: "click",
  description: "Clicks an element, once it is visible, does not move, and nothing covers it.",
  example: "- click: { role: button, name: Sign in }",
  schema: (terms) =>
    onElement(terms, {
      double: Type.Optional(Type.Boolean({ description: "true: a double click." })),
      button: Type.Optional(
        Type.Enum(["left", "right", "middle"], { description: "The mouse button. Default: left." }),
      ),
    }),
  check: (config, path) => locatorFindings(config as unknown as JsonObject, path),
  describe: (config) => describeLocator(locatorPart(config as never)),
  async run(run, config) {
    const element = await run.find(locatorPart(config as never));
    const how = { timeout: run.timeoutMs, ...(config.button && { button: config.button }) };
    if (config.double === true) await element.dblclick(how);
    else await element.click(how);
  },
});
