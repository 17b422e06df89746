import { defineStep } from "#answers/browser/define-step.ts";
import { Type } from "#lib/type.ts";

export const screenshot = defineStep<true>({
  kind: "screenshot",
  description: "Shows operators the page as it is now, on the run's page.",
  only: "node",
  example: "- screenshot: true",
  more: "Fields and secrets are covered, as in the picture of a failed step. A login has no such step: nothing is shown while a secret is typed.",
  schema: () => Type.Literal(true, { description: "Shows operators the page as it is now." }),
  run: async (run) => await run.show(),
});
