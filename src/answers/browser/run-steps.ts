import { setTimeout as sleep } from "node:timers/promises";
import { kindsOf } from "#answers/steps/step-kinds.ts";
import { formatPath, type ConfigPath } from "#domain/config-problem.ts";
import { parseDuration } from "#domain/duration.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { NewEvidence } from "#domain/page-evidence.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { StepConfig, StepPlace, StepRun, StepSink, UploadedFile } from "./define-step.ts";
import type { ConditionConfig } from "./condition-config.ts";
import { isExpired, throwIfExpired, untilOne } from "./condition.ts";
import { explainFailure, type Focus } from "./explain-failure.ts";
import { locate, locatorJson, type LocatorConfig } from "./locator.ts";
import type { StepBrowser } from "./step-browser.ts";
import { StepFailure } from "./step-failure.ts";

/** What a list of steps is run with. */
export interface StepsMeans {
  readonly place: StepPlace;
  readonly browser: StepBrowser;
  readonly sink: StepSink;
  /** Renders a template. Its errors pass unchanged. */
  readonly render: (template: Json) => Promise<Json | undefined>;
  /** Whether a failure has what the page showed (`StepFailure.evidence`). */
  readonly looks: boolean;
  /** Where the list stands in its login or node. Default: `steps`. */
  readonly root?: ConfigPath;
  /** Each step as it begins, described with the document's text. If it throws, the step is not done. */
  begin?(step: string, path: ConfigPath): void;
  /** For a node that writes: called by its `commit` step. */
  commit?(): Promise<void>;
  /** For a node: keeps what a page showed at a `screenshot`. */
  keep?(evidence: NewEvidence): Promise<void>;
  /** For a node: the file that another node gives. */
  fileOf?(source: string): Promise<UploadedFile>;
}

/** A login reads nothing. */
export const NO_SINK: StepSink = { rows: () => {}, fields: () => {}, file: async () => {} };

/**
 * Does steps one after the other. Throws StepFailure, which names the step and never repeats what the driver says; the signal's reason;
 * or what `render` throws.
 */
export async function runSteps(means: StepsMeans, steps: readonly StepConfig[]): Promise<void> {
  const run = runOf(means);
  await runList(means, run, steps, run.path);
}

/** Waits until one of the conditions is true of the page, and returns its index; -1: none is in time. */
export async function whichHolds(means: StepsMeans, conditions: readonly ConditionConfig[]): Promise<number> {
  const run = runOf(means);
  return await untilOne(run, conditions, run.timeoutMs);
}

/** What is outside of all steps. */
function runOf(means: StepsMeans): StepRun {
  const { place, browser, sink } = means;
  const { signal, page } = browser;
  const run: StepRun = {
    place,
    browser,
    page,
    root: page,
    signal,
    timeoutMs: limits.browserStepMs,
    next: undefined,
    sink,
    lastRound: null,
    path: means.root ?? ["steps"],
    render: means.render,
    text: async (template) => textOf(await means.render(template)),
    find: async (locator) => locate(page, await renderLocator(run, locator)),
    steps: async () => {},
    commit: async () => await means.commit?.(),
    show: async () => {},
    fileOf: async (source) => must(await means.fileOf?.(source), "only nodes have files"),
    sleep: async (ms) => await sleep(ms, undefined, { signal }),
    nowMs: () => performance.now(),
  };
  return run;
}

/** Each step gets a run of its own: its place, its time, and what its locators are relative to. */
async function runList(
  means: StepsMeans,
  within: StepRun,
  list: readonly StepConfig[],
  path: ConfigPath,
): Promise<void> {
  for (const [index, step] of list.entries()) {
    within.signal.throwIfAborted();
    await runStep(means, { ...within, next: list[index + 1], path: [...path, index] }, step);
  }
}

async function runStep(means: StepsMeans, within: StepRun, step: StepConfig): Promise<void> {
  const [kind] = kindsOf(step);
  const { kind: name, describe, run: execute } = must(kind, "a step has a kind");
  const config = step[name] as never;
  const words = `${name} ${describe?.(config) ?? ""}`.trim();
  await failpoint("browser.before_step");
  const place = `${formatPath(within.path)} (${words})`;
  means.begin?.(place, within.path);
  if (means.looks)
    within.browser.begin({
      step: place,
      page: within.page,
      isExpired: async () => await isExpired(within),
    });
  const focus: Focus = { written: null, rendered: null, found: null };
  const run: StepRun = {
    ...within,
    timeoutMs: parseDuration(step["timeout"] ?? null) ?? limits.browserStepMs,
    find: async (locator) => {
      const rendered = await renderLocator(within, locator);
      const found = locate(within.root, rendered);
      Object.assign(focus, { written: locator, rendered, found } satisfies Focus);
      return found;
    },
    show: async () => {
      const look = await within.browser.look(within.page, null);
      if (look !== null) await means.keep?.({ reason: "screenshot", step: place, ...look });
    },
    steps: async (list, path, change = {}) => await runList(means, { ...within, ...change }, list, path),
  };
  try {
    await execute(run, config, step);
    // The page that was asked for, or the sign-in in its place.
    if (name === "goto") await throwIfExpired(run);
  } catch (error) {
    within.signal.throwIfAborted();
    // The error of a step inside of this one has its place already.
    throw error instanceof StepFailure && error.path.length > 0
      ? error
      : await placed(await orExpired(error, run), run, focus, { words, looks: means.looks });
  }
}

/** Why the page is another one than the step describes, if it says so itself. */
async function orExpired(error: unknown, run: StepRun): Promise<unknown> {
  return await throwIfExpired(run).then(
    () => error,
    (found: unknown) => (found instanceof StepFailure ? found : error),
  );
}

async function placed(
  error: unknown,
  run: StepRun,
  { written, rendered, found }: Focus,
  { words, looks }: { readonly words: string; readonly looks: boolean },
): Promise<unknown> {
  const failure = await explainFailure(error, run, { written, rendered, found });
  if (failure === null) return error;
  const step = `${formatPath(run.path)} (${words})`;
  // After an expired session the steps begin again.
  const look = looks && failure.code !== "expired" ? await run.browser.look(run.page, found) : null;
  const evidence = look && { reason: "failed" as const, step, ...look };
  return new StepFailure(failure.code, `${step}: ${failure.message}`, run.path, evidence);
}

async function renderLocator(run: StepRun, locator: LocatorConfig): Promise<LocatorConfig> {
  // Most locators have no template: their rendering would be a call to the expressions' thread.
  if (!JSON.stringify(locator).includes("{{")) return locator;
  const rendered = await run.render(locatorJson(locator));
  return stringsOf(rendered as JsonObject) as unknown as LocatorConfig;
}

/** A template that is one expression keeps its type: a year is a number, and has to be a text here. */
function stringsOf(locator: JsonObject): JsonObject {
  const isText = (key: string): boolean => !["level", "nth", "exact", "checked"].includes(key);
  return Object.fromEntries(
    Object.entries(locator).map(([key, value]) => [
      key,
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? stringsOf(value as JsonObject)
        : isText(key)
          ? textOf(value)
          : value,
    ]),
  );
}

function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
