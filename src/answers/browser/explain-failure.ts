import type { Locator } from "playwright-core";
import { shorten } from "#domain/config-problem.ts";
import { ExpressionError } from "#domain/expression.ts";
import type { StepRun } from "./define-step.ts";
import { describeLocator, type LocatorConfig } from "./locator.ts";
import { namesOf, nearestTo, type Named } from "./nearest-names.ts";
import { StepFailure } from "./step-failure.ts";

/** What the step has looked for last. */
export interface Focus {
  /** As in the document, for messages: what a template gives is data. */
  written: LocatorConfig | null;
  rendered: LocatorConfig | null;
  found: Locator | null;
}

/** Of a text that a page shows; null: it is not known what is secret, so nothing of the page is said. */
type Clean = Awaited<ReturnType<StepRun["browser"]["cleaner"]>>;

/** How long each look for the explanation of a failure may take. */
const LOOK_MS = 2_000;
/** What is in the way decides what kind of failure it is: a page on a busy machine answers late. */
const OBSTACLE_MS = 10_000;

/**
 * Why a step failed, in our words: what the page has instead of what the step looks for. Null: the error is not the step's (an
 * expression, a bug), and passes unchanged.
 */
export async function explainFailure(
  error: unknown,
  run: StepRun,
  focus: Focus,
): Promise<StepFailure | null> {
  if (error instanceof StepFailure && error.message !== "" && !isOfPage(error)) return error;
  if (!(error instanceof StepFailure) && !isOfDriver(error)) return null;
  const ended = run.browser.ended();
  if (ended !== null) return ended;
  if (run.page.isClosed()) return new StepFailure("browser_crashed", "the page was closed");
  const known = knownFailure(error, run);
  if (known !== null && !isOfPage(known)) return known;
  const clean = await run.browser.cleaner();
  const obstacle = await findObstacle(run, clean);
  if (obstacle !== null) return obstacle;
  const failure = known ?? (await lookedFor(error, run, focus, clean));
  const refused = run.browser.refused();
  const origins = refused.slice(0, 5).map(({ origin, count }) => `${origin} (${count})`);
  const note = origins.length === 0 ? "" : `; refused requests of the page: ${origins.join(", ")}`;
  const instead =
    known === null || focus.rendered === null ? "" : await foundInstead(run, focus.rendered, clean);
  return new StepFailure(failure.code, `${failure.message}${instead}${at(run, clean)}${note}`);
}

/** What was found instead may explain it. */
const isOfPage = ({ code }: StepFailure): boolean => ["unexpected", "not_found"].includes(code);

/** A field that gets no secret is explained like one that can't be clicked. */
const LOOKED_FOR = ["not_found", "ambiguous", "not_ready"];

function knownFailure(error: unknown, run: StepRun): StepFailure | null {
  if (!(error instanceof StepFailure)) return navigationFailure(error, run);
  return LOOKED_FOR.includes(error.code) && error.message === "" ? null : error;
}

/** The driver's errors by their names; ours, and those of a bug, have others. */
const isOfDriver = (error: unknown): boolean =>
  error instanceof Error &&
  !(error instanceof ExpressionError) &&
  ["Error", "TimeoutError", "TargetClosedError"].includes(error.name);

/** A page that could not be opened. Of the driver's text only the name of the network error is used. */
function navigationFailure(error: unknown, run: StepRun): StepFailure | null {
  const name = error instanceof Error ? /\bnet::(ERR_[A-Z0-9_]{1,60})\b/.exec(error.message)?.[1] : undefined;
  if (name === undefined) return null;
  const refused = run.browser.refused().map(({ origin }) => origin);
  return refused.length > 0 && /BLOCKED|ABORTED|TUNNEL|PROXY/.test(name)
    ? new StepFailure("blocked", `the egress rules refused ${refused.slice(0, 5).join(", ")}`)
    : new StepFailure("unreachable", `the page could not be loaded (${name})`);
}

/** The page's URL without its query, which may have tokens. */
function at(run: StepRun, clean: Clean): string {
  const url = URL.parse(run.page.url());
  return url === null || url.origin === "null" || clean === null
    ? ""
    : `; the page is ${shorten(clean(url.origin + url.pathname), 200)}`;
}

/** The state of what the step looked for. */
async function lookedFor(error: unknown, run: StepRun, focus: Focus, clean: Clean): Promise<StepFailure> {
  const { written: locator, rendered, found } = focus;
  if (locator === null || rendered === null || found === null)
    return error instanceof Error && error.name === "TimeoutError"
      ? new StepFailure("timeout", `it took longer than ${run.timeoutMs / 1_000} s`)
      : new StepFailure("unreachable", "the page was replaced by another one in the meantime");
  const count = await quiet(found.count(), 0);
  if (count === 0)
    return new StepFailure(
      "not_found",
      `there is no ${describeLocator(locator)}${await foundInstead(run, rendered, clean)}`,
    );
  if (count > 1) {
    const matches = await describeMatches(found, count, clean);
    return new StepFailure(
      "ambiguous",
      `${count} elements match ${describeLocator(locator)}: ${matches}; use \`exact\`, \`in\` or \`nth\``,
    );
  }
  const isVisible = await quiet(found.isVisible(), false);
  const isEnabled = isVisible && (await quiet(found.isEnabled({ timeout: LOOK_MS }), false));
  const state = !isVisible ? "is not visible" : !isEnabled ? "is disabled" : "can't be used";
  const why = isEnabled ? " (it moves, is read-only, or something covers it; see `dismiss`)" : "";
  return new StepFailure("not_ready", `${describeLocator(locator)} ${state}${why}`);
}

/** `; there are: "Log in", "Help"`, or nothing. */
async function foundInstead(run: StepRun, locator: LocatorConfig, clean: Clean): Promise<string> {
  const names = nearestTo(locator, await namesIn(run.page.locator("css=:root"), clean));
  return names.length === 0
    ? ""
    : `; there are: ${names.map(({ role, name }) => `${role} "${name}"`).join(", ")}`;
}

const SHOWN_MATCHES_MAX = 5;

async function describeMatches(found: Locator, count: number, clean: Clean): Promise<string> {
  const shown = Math.min(count, SHOWN_MATCHES_MAX);
  const all: string[] = [];
  for (let index = 0; index < shown; index++) {
    const [named] = await namesIn(found.nth(index), clean);
    all.push(named === undefined ? `nth ${index}` : `${named.role} "${named.name}"`);
  }
  return `${all.join(", ")}${count > shown ? ", …" : ""}`;
}

async function namesIn(element: Locator, clean: Clean): Promise<readonly Named[]> {
  return clean === null
    ? []
    : namesOf(await quiet(element.ariaSnapshotJSON({ timeout: LOOK_MS }), null), clean);
}

/** The page may be gone, or hang: then there is nothing to say. */
async function quiet<T>(asked: Promise<unknown>, otherwise: T): Promise<T> {
  const answer = await answerOf(asked, LOOK_MS, otherwise);
  return (answer ?? otherwise) as T;
}

/** Null: there is none in time. `gone`: the page was replaced while it was asked. */
async function answerOf<T>(asked: Promise<T>, withinMs: number, gone: T): Promise<T | null> {
  const timer = Promise.withResolvers<null>();
  const id = setTimeout(() => timer.resolve(null), withinMs);
  try {
    return await Promise.race([asked.catch(() => gone), timer.promise]);
  } finally {
    clearTimeout(id);
  }
}

const CAPTCHA =
  'css=iframe[src*="recaptcha/"], iframe[src*="hcaptcha.com"], iframe[src*="challenges.cloudflare.com"], iframe[src*="arkoselabs"], .g-recaptcha, .h-captcha, .cf-turnstile';

/** What no step can overcome. */
async function findObstacle(run: StepRun, clean: Clean): Promise<StepFailure | null> {
  const captchas = await countOf(run.page.locator(CAPTCHA).filter({ visible: true }));
  // What it shows is not known: to say that something is missing from it would send its author looking for a change.
  if (captchas === null) return new StepFailure("timeout", `the page does not answer${at(run, clean)}`);
  if (captchas > 0)
    return new StepFailure(
      "captcha",
      `the page asks for a captcha, which a person must solve${at(run, clean)}`,
    );
  if (run.place !== "login" || (await countOf(run.page.locator('css=input[type="password"]'))) !== 0)
    return null;
  const passkeys = run.page.getByRole("button", { name: /passkey|security key/i }).filter({ visible: true });
  return ((await countOf(passkeys)) ?? 0) > 0
    ? new StepFailure("passkey_only", `the page offers only a passkey${at(run, clean)}`)
    : null;
}

/** Null: the page does not answer. */
const countOf = async (found: Locator): Promise<number | null> =>
  await answerOf(found.count(), OBSTACLE_MS, 0);
