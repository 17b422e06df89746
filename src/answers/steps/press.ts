import { defineStep, onElement } from "#answers/browser/define-step.ts";
import {
  describeLocator,
  locatorFindings,
  locatorPart,
  type LocatorConfig,
} from "#answers/browser/locator.ts";
import { SAYS } from "#domain/schema-notes.ts";
import type { JsonObject } from "#domain/json.ts";
import { Type } from "#lib/type.ts";

interface PressConfig extends LocatorConfig {
  readonly key: string;
}

const KEY =
  "^((Control|Shift|Alt|Meta|ControlOrMeta)\\+)*(.|Enter|Escape|Tab|Space|Backspace|Delete|Insert|Home|End|PageUp|PageDown|Arrow(Up|Down|Left|Right)|F([1-9]|1[0-2]))$";

const hasLocator = (config: PressConfig): boolean => Object.keys(locatorPart(config as never)).length > 0;

export const press = defineStep<PressConfig>({
  kind: "press",
  description: "Presses a key, in an element or wherever the focus is.",
  example: "- press: { key: Enter, label: Search }",
  schema: (terms) =>
    onElement(terms, {
      key: Type.String({
        pattern: KEY,
        [SAYS]: "a key like `Enter`, `Escape`, `Tab`, `ArrowDown`, `F5`, `a` or `Control+a`",
        description: "The key, such as `Enter`, `ArrowDown` or `Control+a`.",
      }),
    }),
  check: (config, path) => (hasLocator(config) ? locatorFindings(config as unknown as JsonObject, path) : []),
  describe: (config) =>
    hasLocator(config) ? `${config.key} in ${describeLocator(locatorPart(config as never))}` : config.key,
  async run(run, config) {
    if (!hasLocator(config)) await run.page.keyboard.press(config.key);
    else await (await run.find(locatorPart(config as never))).press(config.key, { timeout: run.timeoutMs });
  },
});
