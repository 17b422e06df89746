import { defineStep } from "#answers/browser/define-step.ts";
import { Type } from "#lib/type.ts";

export const back = defineStep<true>({
  kind: "back",
  description: "Goes back to the page before, as the browser's button does.",
  example: "- back: true",
  schema: () =>
    Type.Literal(true, { description: "Goes back to the page before, as the browser's button does." }),
  run: async (run) => void (await run.page.goBack({ timeout: run.timeoutMs })),
});
