import { createReadStream } from "node:fs";
import { defineStep } from "#answers/browser/define-step.ts";
import { describeLocator, locatorFindings, type LocatorConfig } from "#answers/browser/locator.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import type { JsonObject } from "#domain/json.ts";
import { Type } from "#lib/type.ts";

interface DownloadConfig {
  readonly click: LocatorConfig;
}

export const download = defineStep<DownloadConfig>({
  kind: "download",
  description: "Clicks an element that gives a file, which becomes the node's value.",
  only: "node",
  example: `- download: { click: { role: button, name: Export CSV } }`,
  more: "It is the last step of a node that reads nothing else; a `parse` node reads the file. The file must have come within the step's `timeout`. It may come from the hosts, or be made by the page.",
  schema: (terms) =>
    Type.Object({ click: terms.locator("The element to click.") }, { additionalProperties: false }),
  check: ({ click }, path) => locatorFindings(click as unknown as JsonObject, [...path, "click"]),
  describe: ({ click }) => describeLocator(click),
  async run(run, { click }) {
    const element = await run.find(click);
    const untilMs = run.nowMs() + run.timeoutMs;
    const beginning = run.page.waitForEvent("download", { timeout: run.timeoutMs });
    // It fails by itself if the click does.
    beginning.catch(() => {});
    await element.click({ timeout: run.timeoutMs });
    const begun = await beginning.catch(() => null);
    if (begun === null) throw new StepFailure("unexpected", "the click gave no file");
    const timer = Promise.withResolvers<null>();
    const id = setTimeout(() => timer.resolve(null), Math.max(untilMs - run.nowMs(), 0));
    const path = await Promise.race([begun.path().catch(() => ""), timer.promise]).finally(() => {
      clearTimeout(id);
    });
    if (path === null)
      throw new StepFailure("timeout", `the file took longer than ${run.timeoutMs / 1_000} s`);
    if (path === "")
      throw run.browser.ended() ?? new StepFailure("unexpected", "the file could not be downloaded");
    await run.sink.file({ filename: begun.suggestedFilename(), bytes: () => createReadStream(path) });
  },
});
