import { enterValue, ENTER_SCHEMA, type EnterConfig } from "#answers/browser/enter-value.ts";
import { defineStep } from "#answers/browser/define-step.ts";
import { describeLocator, locatorFindings, locatorPart } from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";

export const type = defineStep<EnterConfig>({
  kind: "type",
  description: "Types a value into a field key by key, for fields that react to each key.",
  example: '- type: { label: One-time code, with: "{{ $credential.totp.code }}" }',
  more: "Use `fill` unless the field needs key events: it is faster, and clears the field first.",
  schema: ENTER_SCHEMA,
  check: (config, path) => locatorFindings(config as unknown as JsonObject, path),
  describe: (config) => describeLocator(locatorPart(config as never)),
  run: async (run, config) => await enterValue(run, config, "type"),
});
