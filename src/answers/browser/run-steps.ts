import { setTimeout as sleep } from "node:timers/promises";
import { kindsOf } from "#answers/steps/step-kinds.ts";
import { formatPath, type ConfigPath } from "#domain/config-problem.ts";
import { parseDuration } from "#domain/duration.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import type { StepConfig, StepPlace, StepRun, StepSink } from "./define-step.ts";
import { throwIfExpired } from "./condition.ts";
import { explainFailure, type Focus } from "./explain-failure.ts";
import { locate, locatorJson, type LocatorConfig } from "./locator.ts";
import type { StepBrowser } from "./step-browser.ts";
import { StepFailure } from "./step-failure.ts";

/** What a list of steps is run with. */
export interface StepsMeans {
  readonly place: StepPlace;
  readonly browser: StepBrowser;
  readonly signal: AbortSignal;
  readonly sink: StepSink;
  /** Renders a template. Its errors pass unchanged. */
  readonly render: (template: Json) => Promise<Json | undefined>;
  /** Each step as it begins, described with the document's text. */
  begin?(step: string, path: ConfigPath): void;
}

/** A login reads nothing. */
export const NO_SINK: StepSink = { rows: () => {}, fields: () => {} };

/**
 * Does steps one after the other. Throws StepFailure, which names the step and never repeats what the driver says; the signal's reason;
 * or what `render` throws.
 */
export async function runSteps(means: StepsMeans, steps: readonly StepConfig[]): Promise<void> {
  const { place, browser, signal, sink } = means;
  const run: StepRun = {
    place,
    browser,
    page: browser.page,
    root: browser.page,
    signal,
    timeoutMs: limits.browserStepMs,
    next: undefined,
    sink,
    lastRound: null,
    path: ["steps"],
    render: means.render,
    text: async (template) => textOf(await means.render(template)),
    find: async () => await Promise.reject(new Error("a step finds its elements by itself")),
    steps: async () => {},
    sleep: async (ms) => await sleep(ms, undefined, { signal }),
    nowMs: () => performance.now(),
  };
  await runList(means, run, steps, run.path);
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
  means.begin?.(`${formatPath(within.path)} (${words})`, within.path);
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
      : await placed(await orExpired(error, run), run, focus, words);
  }
}

/** Why the page is another one than the step describes, if it says so itself. */
async function orExpired(error: unknown, run: StepRun): Promise<unknown> {
  return await throwIfExpired(run).then(
    () => error,
    (found: unknown) => (found instanceof StepFailure ? found : error),
  );
}

async function placed(error: unknown, run: StepRun, focus: Focus, words: string): Promise<unknown> {
  const failure = await explainFailure(error, run, focus);
  if (failure === null) return error;
  return new StepFailure(failure.code, `${formatPath(run.path)} (${words}): ${failure.message}`, run.path);
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
