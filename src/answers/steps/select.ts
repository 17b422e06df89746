import { defineStep, onElement } from "#answers/browser/define-step.ts";
import {
  describeLocator,
  locatorFindings,
  locatorPart,
  type LocatorConfig,
} from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";

interface SelectConfig extends LocatorConfig {
  readonly option: string;
}

export const select = defineStep<SelectConfig>({
  kind: "select",
  description: "Selects an option of a `<select>`, by its text or value.",
  example: '- select: { label: Year, option: "{{ $inputs.year }}" }',
  more: "Lists that a page draws by itself are not a `<select>`: click them open, then click the option.",
  schema: (terms) => onElement(terms, { option: terms.text("The option's text or value.") }),
  check: (config, path) => locatorFindings(config as unknown as JsonObject, path),
  describe: (config) => describeLocator(locatorPart(config as never)),
  async run(run, config) {
    const element = await run.find(locatorPart(config as never));
    await element.selectOption(await run.text(config.option), { timeout: run.timeoutMs });
  },
});
