import type { ConditionConfig } from "#answers/browser/condition-config.ts";
import { conditionFindings, conditionKeys, describeCondition, untilOne } from "#answers/browser/condition.ts";
import { defineStep } from "#answers/browser/define-step.ts";
import { locatorFindings, type LocatorConfig } from "#answers/browser/locator.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import type { JsonObject } from "#domain/json.ts";
import { Type } from "#lib/type.ts";

interface ExpectConfig extends ConditionConfig {
  readonly rejected?: LocatorConfig;
}

export const expect = defineStep<ExpectConfig>({
  kind: "expect",
  description: "Fails unless the page gets into a state in time.",
  example: `- expect:
    visible: { role: heading, name: Dashboard }
    rejected: { text: Wrong email or password }`,
  more: "In a login, `rejected` is what the page shows for a wrong password: the login then fails at once, and counts towards `lockout`. In a node that writes, it is what the page shows when the target refuses the write: nothing has happened, and the node fails.",
  schema: (terms) =>
    Type.Object(
      {
        ...conditionKeys(terms),
        rejected: Type.Optional(
          terms.locator(
            terms.place === "login"
              ? "What the page shows when the target refuses the credential."
              : "In a node that writes: what the page shows when the target refuses the write.",
          ),
        ),
      },
      { additionalProperties: false },
    ),
  check: ({ rejected, ...condition }, path) => [
    ...conditionFindings(condition as unknown as JsonObject, path),
    ...(rejected === undefined
      ? []
      : locatorFindings(rejected as unknown as JsonObject, [...path, "rejected"])),
  ],
  describe: ({ rejected: _rejected, ...condition }) => describeCondition(condition),
  async run(run, { rejected, ...condition }) {
    const refusal = rejected === undefined ? [] : [{ visible: rejected }];
    const met = await untilOne(run, [...refusal, condition], run.timeoutMs);
    if (met === 0 && refusal.length > 0)
      throw new StepFailure(
        "rejected",
        `the target rejected the ${run.place === "login" ? "credential" : "write"}`,
      );
    if (met < 0) throw new StepFailure("unexpected", "the page did not get there in time");
  },
});
