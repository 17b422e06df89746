import { defineStep } from "#answers/browser/define-step.ts";
import { Type } from "#lib/type.ts";

export const reload = defineStep<true>({
  kind: "reload",
  description: "Loads the page again.",
  example: "- reload: true",
  schema: () => Type.Literal(true, { description: "Loads the page again." }),
  run: async (run) => void (await run.page.reload({ timeout: run.timeoutMs })),
});
