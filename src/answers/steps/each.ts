import { defineStep, type StepConfig } from "#answers/browser/define-step.ts";
import { countRows } from "#answers/browser/read-rows.ts";
import { describeLocator, locatorFindings, type LocatorConfig } from "#answers/browser/locator.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { Type } from "#lib/type.ts";

interface EachConfig {
  readonly rows: LocatorConfig;
  readonly empty?: LocatorConfig;
  readonly steps: readonly StepConfig[];
  readonly max?: number;
}

export const each = defineStep<EachConfig>({
  kind: "each",
  description: "Does its `steps` for each match of a locator; their locators look inside of that match.",
  example: `- each:
    rows: { css: ".invoice" }
    steps:
      - click: { role: button, name: Details }
      - extract: { fields: { number: .no, iban: .iban } }`,
  more: "`fields` that are read inside become one record for each row.",
  schema: (terms) =>
    Type.Object(
      {
        rows: terms.locator("The elements, in the order of the page."),
        empty: Type.Optional(terms.locator("What the page shows when there are none.")),
        steps: terms.steps("The steps for each of them."),
        max: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: limits.browserRoundsMax,
            default: 1_000,
            description: "The number of rows after which the step fails.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
  check: ({ rows, empty }, path) => [
    ...locatorFindings(rows as unknown as JsonObject, [...path, "rows"]),
    ...(empty === undefined ? [] : locatorFindings(empty as unknown as JsonObject, [...path, "empty"])),
  ],
  describe: ({ rows }) => describeLocator(rows),
  async run(run, { rows, empty, steps, max = 1_000 }) {
    const count = await countRows(run, rows, empty);
    if (count > max)
      throw new StepFailure("unexpected", `there are ${count} rows, more than ${max}; raise \`max\``);
    const found = await run.find(rows);
    for (let index = 0; index < count; index++) {
      let record: JsonObject | null = null;
      const sink = {
        ...run.sink,
        fields: (fields: JsonObject) => void (record = { ...record, ...fields }),
      };
      await run.steps(steps, [...run.path, "each", "steps"], {
        root: found.nth(index),
        sink,
        lastRound: null,
      });
      if (record !== null) run.sink.rows([record]);
    }
  },
});
