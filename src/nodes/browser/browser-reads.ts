import { StepFailure } from "#answers/browser/step-failure.ts";
import { limits } from "#domain/limits.ts";
import { retryDelayMs } from "#lib/retry-delay.ts";
import type { NodeContext } from "#nodes/define-node.ts";
import { givesFile, type BrowserConfig } from "./browser-config.ts";
import { doSteps, logFailure, nodeFailure, type PageOutput } from "./do-steps.ts";

/** A read that failed starts again with its first step, in a new browser: nothing of the first attempt is kept. Throws NodeFailure. */
export async function readPages(context: NodeContext, config: BrowserConfig): Promise<PageOutput> {
  const may = givesFile(config) ? { downloadBytesMax: limits.wholeBytesMax } : {};
  for (let attempt = 1; ; attempt++) {
    try {
      return await context.browse(async (browser) => await doSteps(context, browser, config), may);
    } catch (error) {
      if (!(error instanceof StepFailure)) throw error;
      logFailure(context, error, attempt);
      if (!(await mayRepeat(context, error, attempt))) throw await nodeFailure(context, error, attempt);
    }
  }
}

/** Whether the steps may be done again; if so, waits for the time that `retry` says. */
export async function mayRepeat(context: NodeContext, error: StepFailure, attempt: number): Promise<boolean> {
  const { retry } = context.node;
  if (attempt >= retry.attempts || !error.isPassing || !(await context.takeRetry())) return false;
  await context.sleep(retryDelayMs(retry, attempt, null, context.random()));
  return true;
}
