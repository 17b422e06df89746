import type { DownloadedFile, UploadedFile } from "#answers/browser/define-step.ts";
import { runSteps, type StepsMeans } from "#answers/browser/run-steps.ts";
import type { StepBrowser } from "#answers/browser/step-browser.ts";
import type { StepFailure } from "#answers/browser/step-failure.ts";
import { formatPath } from "#domain/config-problem.ts";
import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { FileValue } from "#domain/value.ts";
import { flowFrom, NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import { fileOfFlow } from "#nodes/given-file.ts";
import type { BrowserConfig } from "./browser-config.ts";

/**
 * Does the steps of a node once, in a browser; returns the records that they read. `watch`: see `StepsMeans`; its `after` is called with
 * the page on which the steps have ended.
 */
export async function doSteps(
  context: NodeContext,
  browser: StepBrowser,
  { steps, evidence = "on_failure" }: Pick<BrowserConfig, "steps" | "evidence">,
  watch: Pick<StepsMeans, "begin" | "commit" | "root"> & {
    readonly after?: (means: StepsMeans) => Promise<void>;
  } = {},
): Promise<PageOutput> {
  const rows: JsonObject[] = [];
  let single: JsonObject | null = null;
  let file: FileValue | null = null;
  let pictures = 0;
  let characters = 0;
  const count = (read: readonly JsonObject[]): void => {
    for (const record of read)
      for (const value of Object.values(record)) characters += typeof value === "string" ? value.length : 0;
    if (characters > limits.browserNodeCharactersMax)
      throw new NodeFailure(`the pages have more than ${limits.browserNodeCharactersMax} characters.`);
  };
  let begun = 0;
  const beganMs = performance.now();
  const means: StepsMeans = {
    ...watch,
    place: "node",
    browser,
    looks: evidence !== "off",
    render: async (template) => await context.expressions.render(template),
    sink: {
      rows: (read) => {
        count(read);
        for (const record of read) rows.push(record);
      },
      fields: (fields) => {
        count([fields]);
        single = { ...single, ...fields };
      },
      file: async (given) => {
        file = await keptFile(context, given);
      },
    },
    fileOf: async (source) => await uploadOf(context, source),
    keep: async (seen) => {
      if (++pictures <= limits.browserPicturesMax) await context.keepEvidence(seen);
    },
    begin: (...step) => {
      watch.begin?.(...step);
      begun++;
    },
  };
  try {
    await runSteps(means, steps);
    await watch.after?.(means);
    const look = evidence === "always" ? await browser.look(browser.page, null) : null;
    if (look !== null) await context.keepEvidence({ reason: "done", step: "steps", ...look });
  } finally {
    context.log("browser", { steps: begun, tookMs: Math.round(performance.now() - beganMs) });
    for (const { origin, count: times } of browser.refused())
      context.log("refused", { origin, count: times });
  }
  return { records: single === null ? rows : [single], file };
}

/** What the steps of a node have read: records, or a file. */
export interface PageOutput {
  readonly records: readonly JsonObject[];
  readonly file: FileValue | null;
}

/** Copies the file out of the browser's folder. */
async function keptFile(context: NodeContext, { filename, bytes }: DownloadedFile): Promise<FileValue> {
  let sizeBytes = 0;
  async function* counted(): AsyncIterable<Uint8Array> {
    for await (const chunk of bytes()) {
      sizeBytes += chunk.length;
      yield chunk;
    }
  }
  const open = await context.keepFile(counted());
  return { form: "file", filename, contentType: null, sizeBytes, open };
}

/** Throws NodeFailure if the node has no file, or one that is too large. */
async function uploadOf(context: NodeContext, source: string): Promise<UploadedFile> {
  const file = fileOfFlow(flowFrom(context, source));
  if (file === null) throw new NodeFailure(`upload: ${source} gives no file.`);
  if (file.sizeBytes > limits.browserUploadBytesMax)
    throw new NodeFailure(`upload: the file has more than ${limits.browserUploadBytesMax} bytes.`);
  const buffer = Buffer.concat(await Array.fromAsync(file.open()));
  return {
    name: file.filename ?? source,
    mimeType: file.contentType ?? "application/octet-stream",
    buffer,
  };
}

export const logFailure = (context: NodeContext, { code, path }: StepFailure, attempt: number): void =>
  context.log("failed", { code, step: formatPath(path), attempt });

/** The failure of the node. What the page showed is kept first. */
export async function nodeFailure(
  context: NodeContext,
  error: StepFailure,
  attempt: number,
): Promise<NodeFailure> {
  if (error.evidence !== null) await context.keepEvidence(error.evidence);
  const tries = attempt > 1 ? ` (attempt ${attempt})` : "";
  return new NodeFailure(`${error.message}${tries}`, error.kind === undefined ? {} : { kind: error.kind });
}
