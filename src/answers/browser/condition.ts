import { quoteList, shorten, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { Type } from "#lib/type.ts";
import type { ConditionConfig } from "./condition-config.ts";
import type { StepRun, Terms } from "./define-step.ts";
import { StepFailure } from "./step-failure.ts";
import { describeLocator, locatorFindings, type LocatorConfig } from "./locator.ts";

const KINDS = ["visible", "hidden", "enabled", "disabled", "url", "text"] as const;
const OF_LOCATORS = ["visible", "hidden", "enabled", "disabled"] as const;

export const conditionKeys = ({ locator, text }: Terms) => ({
  visible: Type.Optional(locator("Such an element is visible.")),
  hidden: Type.Optional(locator("No such element is visible.")),
  enabled: Type.Optional(locator("Such an element is visible, and can be used.")),
  disabled: Type.Optional(locator("No such element is visible and can be used.")),
  url: Type.Optional(
    text("The page's URL matches this pattern: `*` is any text without `/`, `**` any text."),
  ),
  text: Type.Optional(text("The page shows this text.")),
});

/** `condition` has one of the kinds, and may have keys of its step besides. */
export function conditionFindings(condition: JsonObject, path: ConfigPath): readonly ConfigFinding[] {
  const given = KINDS.filter((kind) => condition[kind] !== undefined);
  const [, second] = given;
  const findings: ConfigFinding[] = OF_LOCATORS.flatMap((kind) => {
    const locator = condition[kind];
    return isJsonObject(locator) ? locatorFindings(locator, [...path, kind]) : [];
  });
  if (given.length === 0)
    findings.push({ path, message: `needs a condition: one of ${quoteList(KINDS)}; add one` });
  if (second !== undefined)
    findings.push({
      path: [...path, second],
      at: "key",
      message: `a condition has only one of ${quoteList(KINDS)}; remove \`${second}\`, or add another step`,
    });
  return findings;
}

/** The condition in the document's words. */
export function describeCondition(condition: ConditionConfig): string {
  const kind = OF_LOCATORS.find((each) => condition[each] !== undefined);
  if (kind !== undefined) return `${describeLocator(condition[kind] ?? {})} ${kind}`;
  if (condition.url !== undefined) return `URL "${shorten(condition.url)}"`;
  return `text "${shorten(condition.text ?? "")}"`;
}

/** Whether the condition is true now. Several matches of a locator are no mistake here. */
export async function holds(run: StepRun, condition: ConditionConfig): Promise<boolean> {
  const { visible, hidden, enabled, disabled, url, text } = condition;
  if (visible !== undefined) return await isShown(run, visible);
  if (hidden !== undefined) return !(await isShown(run, hidden));
  if (enabled !== undefined) return await isUsable(run, enabled);
  if (disabled !== undefined) return !(await isUsable(run, disabled));
  if (url !== undefined) return matchesUrl(run.page.url(), await run.text(url));
  if (text !== undefined) {
    const shown = run.page.getByText(await run.text(text)).filter({ visible: true });
    return (await shown.count()) > 0;
  }
  return false;
}

async function isShown(run: StepRun, locator: LocatorConfig): Promise<boolean> {
  return (await (await run.find(locator)).filter({ visible: true }).count()) > 0;
}

async function isUsable(run: StepRun, locator: LocatorConfig): Promise<boolean> {
  const shown = (await run.find(locator)).filter({ visible: true });
  const untilMs = run.nowMs() + run.timeoutMs;
  for (;;) {
    if ((await shown.count()) === 0) return false;
    try {
      return await shown.first().isEnabled({ timeout: LOOK_MS });
    } catch (error) {
      // The element went between the two calls, or the page is busy. A slow answer is not "no": a `repeat` would end too early.
      if (!(error instanceof Error) || error.name !== "TimeoutError" || run.nowMs() >= untilMs) throw error;
    }
  }
}

const LOOK_MS = 500;

/** What comes soon is seen soon; what takes long costs few looks. */
const PAUSE_MS = { min: 8, max: 50, ofWait: 1 / 8 };
const pauseMs = (waitedMs: number): number =>
  Math.min(PAUSE_MS.min + waitedMs * PAUSE_MS.ofWait, PAUSE_MS.max);

/** Looks again and again until `look` gives something; null: it did not within this time. */
export async function lookUntil<T>(
  run: StepRun,
  timeoutMs: number,
  look: () => Promise<T | null>,
): Promise<T | null> {
  const beganMs = run.nowMs();
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    const waitedMs = run.nowMs() - beganMs;
    if (waitedMs >= timeoutMs) return null;
    await run.sleep(pauseMs(waitedMs));
  }
}

/** Waits until one of the conditions is true, and returns its index; -1 when the time is over. */
export async function untilOne(
  run: StepRun,
  conditions: readonly ConditionConfig[],
  timeoutMs: number,
): Promise<number> {
  const met = await lookUntil(run, timeoutMs, async () => {
    for (const [index, condition] of conditions.entries()) if (await settled(run, condition)) return index;
    await throwIfExpired(run);
    return null;
  });
  return met ?? -1;
}

/** Nothing else of the page will come. */
export async function throwIfExpired(run: StepRun): Promise<void> {
  if (await isExpired(run))
    throw new StepFailure("expired", "the page says that the session has ended (`expired`)");
}

/** Whether the page says that the session has ended. */
export async function isExpired(run: StepRun): Promise<boolean> {
  const { expired } = run.browser;
  return expired !== null && (await settled(run, expired));
}

/** While a page is replaced by the next one there is nothing to look at: not an error, but not true either. */
async function settled(run: StepRun, condition: ConditionConfig): Promise<boolean> {
  try {
    return await holds(run, condition);
  } catch (error) {
    if (run.page.isClosed() || run.browser.ended() !== null || !isOfNavigation(error)) throw error;
    return false;
  }
}

const isOfNavigation = (error: unknown): boolean =>
  error instanceof Error && /context was destroyed|navigat|detached/i.test(error.message);

/** `*` is any text without `/`, `**` any text. A pattern that begins with `/` is matched from the path on. */
export function matchesUrl(url: string, pattern: string): boolean {
  const parts = pattern.split(/(\*{1,2})/).map((part) => {
    if (part === "**") return ".*";
    return part === "*" ? "[^/]*" : part.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
  });
  const text = pattern.startsWith("/") && URL.canParse(url) ? pathOf(new URL(url)) : url;
  return new RegExp(`^${parts.join("")}$`, "s").test(text);
}

const pathOf = ({ pathname, search, hash }: URL): string => pathname + search + hash;

/**
 * What an `expect` describes: it is about the page after the steps before it. The elements of any other step may have been there all the
 * time.
 */
export function expectedBy(step: Readonly<Record<string, Json>> | undefined): readonly ConditionConfig[] {
  const expect = step?.["expect"];
  if (!isJsonObject(expect)) return [];
  const { visible, rejected } = expect;
  return [visible, rejected].flatMap((locator) =>
    isJsonObject(locator) ? [{ visible: locator as LocatorConfig }] : [],
  );
}
