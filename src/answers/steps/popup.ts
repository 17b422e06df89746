import { defineStep, type StepConfig } from "#answers/browser/define-step.ts";
import { describeLocator, locatorFindings, type LocatorConfig } from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";
import { Type } from "#lib/type.ts";

interface PopupConfig {
  readonly click: LocatorConfig;
  readonly steps: readonly StepConfig[];
}

export const popup = defineStep<PopupConfig>({
  kind: "popup",
  description: "Clicks an element that opens a window, does its `steps` there, and closes the window.",
  example: `- popup:
    click: { role: button, name: Sign in with Acme }
    steps:
      - fill: { label: Email, with: "{{ $credential.username }}" }
      - click: { role: button, name: Continue }`,
  more: "A window that the page closes ends its steps, so the last of them may be the click that does it. What a window shows must be of the hosts, like every page.",
  schema: (terms) =>
    Type.Object(
      {
        click: terms.locator("The element to click."),
        steps: terms.steps("The steps in the window."),
      },
      { additionalProperties: false },
    ),
  check: ({ click }, path) => locatorFindings(click as unknown as JsonObject, [...path, "click"]),
  describe: ({ click }) => describeLocator(click),
  async run(run, { click, steps }) {
    const element = await run.find(click);
    const opening = run.page.waitForEvent("popup", { timeout: run.timeoutMs });
    // It fails by itself if the click does.
    opening.catch(() => {});
    await element.click({ timeout: run.timeoutMs });
    const window = await opening;
    await window.waitForLoadState("load", { timeout: run.timeoutMs });
    try {
      await run.steps(steps, [...run.path, "popup", "steps"], { page: window, root: window });
    } catch (error) {
      if (!window.isClosed()) throw error;
    }
    await window.close();
  },
});
