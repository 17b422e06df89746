import type { ConditionConfig } from "#answers/browser/condition-config.ts";
import {
  conditionFindings,
  conditionKeys,
  describeCondition,
  matchesUrl,
  untilOne,
} from "#answers/browser/condition.ts";
import { defineStep, type StepRun } from "#answers/browser/define-step.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import { shorten } from "#domain/config-problem.ts";
import { parseDuration } from "#domain/duration.ts";
import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { Type } from "#lib/type.ts";

interface WaitConfig extends ConditionConfig {
  readonly response?: { readonly url: string };
  readonly for?: string;
}

export const wait = defineStep<WaitConfig>({
  kind: "wait",
  description: "Waits until the page is in a state, or a request of it was answered.",
  example: "- wait: { hidden: { text: Loading } }",
  more: "Steps wait for their own element by themselves, so this is needed only for states that no element shows. `for` alone is a pause of at most 10 s: a page is seldom ready at the same time twice, so prefer a condition.",
  schema: (terms) =>
    Type.Object(
      {
        ...conditionKeys(terms),
        response: Type.Optional(
          Type.Object(
            { url: terms.text("A pattern for the URL, as in `url`.") },
            {
              additionalProperties: false,
              description: "A request whose URL matches is answered after this step has begun.",
            },
          ),
        ),
        for: Type.Optional(terms.duration("A pause without a condition, at most 10s.")),
      },
      { additionalProperties: false },
    ),
  check(config, path) {
    const { for: pause, response, ...condition } = config;
    const isConditional = Object.keys(condition).length > 0;
    if (pause !== undefined) {
      if (isConditional || response !== undefined)
        return [
          {
            path: [...path, "for"],
            at: "key",
            message: "a pause has no condition; use the step's `timeout`",
          },
        ];
      return (parseDuration(pause) ?? 0) > limits.browserPauseMsMax
        ? [
            {
              path: [...path, "for"],
              message: "a pause is at most `10s`; wait for a state of the page, such as `visible`",
            },
          ]
        : [];
    }
    if (response === undefined) return conditionFindings(condition as unknown as JsonObject, path);
    return isConditional
      ? [{ path: [...path, "response"], at: "key", message: "a `wait` has one condition; add another step" }]
      : [];
  },
  describe: ({ for: pause, response, ...condition }) => {
    if (pause !== undefined) return pause;
    return response === undefined ? describeCondition(condition) : `response of "${shorten(response.url)}"`;
  },
  async run(run, { for: pause, response, ...condition }) {
    if (pause !== undefined) await run.sleep(parseDuration(pause) ?? 0);
    else if (response !== undefined) await untilAnswered(run, response.url);
    else if ((await untilOne(run, [condition], run.timeoutMs)) < 0)
      throw new StepFailure("unexpected", "the page did not get there in time");
  },
});

async function untilAnswered(run: StepRun, template: string): Promise<void> {
  const pattern = await run.text(template);
  await run.page.waitForResponse((response) => matchesUrl(response.url(), pattern), {
    timeout: run.timeoutMs,
  });
}
