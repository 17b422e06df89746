import { defineStep } from "#answers/browser/define-step.ts";
import { Type } from "#lib/type.ts";

interface DialogConfig {
  readonly answer: "accept" | "dismiss";
  readonly text?: string;
}

export const dialog = defineStep<DialogConfig>({
  kind: "dialog",
  description: "From here on, how dialogs of the page (`confirm`, `prompt`, `alert`) are answered.",
  example: "- dialog: { answer: accept }",
  more: "Without this step, dialogs are dismissed.",
  schema: (terms) =>
    Type.Object(
      {
        answer: Type.Enum(["accept", "dismiss"], { description: "How a dialog is answered." }),
        text: Type.Optional(terms.text("The text for a `prompt`.")),
      },
      { additionalProperties: false },
    ),
  check: ({ answer, text }, path) =>
    answer === "dismiss" && text !== undefined
      ? [{ path: [...path, "text"], at: "key", message: "a dismissed dialog has no text; remove it" }]
      : [],
  describe: ({ answer }) => answer,
  async run(run, { answer, text }) {
    const typed = text === undefined ? undefined : await run.text(text);
    run.page.removeAllListeners("dialog");
    run.page.on("dialog", (shown) => {
      // A page that is closed meanwhile takes its dialog along.
      void (answer === "accept" ? shown.accept(typed) : shown.dismiss()).catch(() => {});
    });
  },
});
