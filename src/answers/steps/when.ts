import type { ConditionConfig } from "#answers/browser/condition-config.ts";
import {
  conditionFindings,
  conditionKeys,
  expectedBy,
  describeCondition,
  untilOne,
} from "#answers/browser/condition.ts";
import { defineStep } from "#answers/browser/define-step.ts";
import { isJsonObject, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { parseDuration } from "#domain/duration.ts";
import { Type } from "#lib/type.ts";

interface WhenConfig extends ConditionConfig {
  readonly within?: string;
}

export const when = defineStep<WhenConfig>({
  kind: "when",
  description: "Does its `steps` only if the page is in a state.",
  example: `- when: { visible: { label: One-time code } }
  steps:
    - fill: { label: One-time code, with: "{{ $credential.totp.code }}" }
    - click: { role: button, name: Verify }`,
  more: "The page gets 2 s (`within`) to reach the state. The wait ends sooner if the page shows what an `expect` right after it describes.",
  schema: (terms) =>
    Type.Object(
      {
        ...conditionKeys(terms),
        within: Type.Optional(terms.duration("How long the page may take to get there. Default: 2s.")),
      },
      { additionalProperties: false },
    ),
  beside: (terms) => ({ steps: terms.steps("With `when`: the steps to do.") }),
  check({ within: _within, ...condition }, path, step) {
    const findings = conditionFindings(condition as unknown as JsonObject, path);
    return Array.isArray(step["steps"])
      ? findings
      : [...findings, { path, at: "key", message: "`when` needs `steps` beside it; add them" }];
  },
  describe: ({ within: _within, ...condition }) => describeCondition(condition),
  async run(run, { within, ...condition }, step) {
    const waitMs = within === undefined ? limits.browserWhenMs : (parseDuration(within) ?? 0);
    const met = await untilOne(run, [condition, ...expectedBy(run.next)], waitMs);
    const steps = Array.isArray(step["steps"]) ? step["steps"].filter(isJsonObject) : [];
    if (met === 0) await run.steps(steps, [...run.path, "steps"]);
  },
});
