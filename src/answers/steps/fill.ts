import { enterValue, ENTER_SCHEMA, type EnterConfig } from "#answers/browser/enter-value.ts";
import { defineStep } from "#answers/browser/define-step.ts";
import { describeLocator, locatorFindings, locatorPart } from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";

export const fill = defineStep<EnterConfig>({
  kind: "fill",
  description: "Sets the value of a field.",
  example: '- fill: { label: Email, with: "{{ $credential.username }}" }',
  more: "In a login, the value is set only in a page and field of the strategy's hosts, checked in the same step where the page's script can't interfere; otherwise the login fails with `secret_refused`.",
  schema: ENTER_SCHEMA,
  check: (config, path) => locatorFindings(config as unknown as JsonObject, path),
  describe: (config) => describeLocator(locatorPart(config as never)),
  run: async (run, config) => await enterValue(run, config, "fill"),
});
