import type { ConditionConfig } from "#answers/browser/condition-config.ts";
import { conditionFindings, conditionKeys, holds, throwIfExpired } from "#answers/browser/condition.ts";
import { defineStep, type StepConfig } from "#answers/browser/define-step.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { Type } from "#lib/type.ts";

interface RepeatConfig {
  readonly steps: readonly StepConfig[];
  readonly while: ConditionConfig;
  readonly next?: readonly StepConfig[];
  readonly max?: number;
}

export const repeat = defineStep<RepeatConfig>({
  kind: "repeat",
  description: "Does its `steps`, and again as long as a condition is true, such as page after page.",
  example: `- repeat:
    steps:
      - extract: { rows: { css: "table tbody tr" }, columns: { number: td.no, total: td.total } }
    while: { enabled: { role: link, name: Next } }
    next:
      - click: { role: link, name: Next }`,
  more: "`while` is looked at after `steps`; while it is true, `next` leads to the next round. In every round but the first, an `extract` and an `each` wait until the page shows other rows than in the round before, so no page is read twice.",
  schema: (terms) =>
    Type.Object(
      {
        steps: terms.steps("The steps of each round."),
        while: Type.Object(conditionKeys(terms), {
          additionalProperties: false,
          description: "Whether there is another round.",
        }),
        next: Type.Optional(terms.steps("The steps that lead from one round to the next.")),
        max: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: limits.browserRoundsMax,
            default: 100,
            description: "The number of rounds after which the step fails.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
  check: (config, path) => conditionFindings(config.while as unknown as JsonObject, [...path, "while"]),
  async run(run, { steps, while: condition, next = [], max = 100 }) {
    const lastRound = new Map<string, string>();
    const path = [...run.path, "repeat"];
    for (let round = 1; ; round++) {
      await run.steps(steps, [...path, "steps"], { lastRound });
      if (!(await holds(run, condition))) {
        // A page that left for the sign-in has no "Next" either.
        await throwIfExpired(run);
        return;
      }
      if (round >= max)
        throw new StepFailure("unexpected", `there are more than ${max} rounds; raise \`max\``);
      await run.steps(next, [...path, "next"]);
    }
  },
});
