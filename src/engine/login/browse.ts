import { clickAway, dismissedIn } from "#answers/browser/click-away.ts";
import type { ConditionConfig } from "#answers/browser/condition-config.ts";
import { locate, type LocatorConfig } from "#answers/browser/locator.ts";
import { StepFailure, type StepFailureCode } from "#answers/browser/step-failure.ts";
import type { BegunStep, StepBrowser } from "#answers/browser/step-browser.ts";
import { OutboundError, type MayLeave } from "#domain/http-exchange.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { Strategy } from "#domain/strategy.ts";
import { failpoint } from "#lib/failpoint.ts";
import { Secret } from "#lib/secret.ts";
import { BrowserError, type BrowserFailure } from "#outbound/browser/browser-error.ts";
import type { Browsers } from "#outbound/browser/browsers.ts";
import type { OpenBrowser } from "#outbound/browser/open-browser.ts";
import type { BrowserState } from "#outbound/browser/state.ts";
import type { PageTape } from "#outbound/browser/tape.ts";
import type { CapturedSession, LoginBrowser, LoginSession } from "#strategies/define-login.ts";
import type { SessionJar } from "#strategies/http/session-jar.ts";
import type { BothNets } from "#engine/redaction/both-nets.ts";
import { withoutTokens, type AnswerOf } from "#engine/redaction/hide-tokens.ts";
import { cookieSecrets } from "#engine/redaction/run-secrets.ts";
import { lookAtPage } from "./look-at-page.ts";
import type { BeforeHop } from "./record-use.ts";

/** What a browser of a login or a node is opened with. */
export interface BrowseMeans {
  readonly browsers: Browsers;
  /** Origins that the pages may show. A relative URL is resolved against the first one. */
  readonly origins: readonly string[];
  /** Further origins from which the pages may load scripts, pictures and data. */
  readonly resources: readonly string[];
  /** The condition by which a page says that the session has ended. */
  readonly expired?: ConditionConfig | null | undefined;
  /** What the login's steps click away: it may first appear in a node, because the login was over before. */
  readonly dismissed?: readonly LocatorConfig[] | undefined;
  readonly login: Secret<LoginSession> | null;
  readonly jar: SessionJar;
  /** Records each origin before it receives anything of a credential. */
  readonly beforeHop: BeforeHop | null;
  readonly mayLeave?: MayLeave | undefined;
  /** Find the secrets of the run in what a page shows; null: they can't, so nothing is shown. */
  readonly nets: () => BothNets | null;
  /** Called with the wait for a browser's place, if there is none: its time is not the run's. */
  readonly whileWaiting?: ((wait: () => Promise<void>) => Promise<void>) | undefined;
  /** For a local run: records what the pages are answered, or answers them. */
  readonly tape?: PageTape | undefined;
  /** The most that the pages may download, in bytes; undefined: nothing. */
  readonly downloadBytesMax?: number | undefined;
}

/** What a login's document says about the pages that are opened with its session. */
export const ofLoggedIn = ({
  login,
}: Pick<Strategy, "login">): Pick<BrowseMeans, "expired" | "dismissed"> => ({
  expired: isJsonObject(login["expired"]) ? (login["expired"] as ConditionConfig) : null,
  dismissed: dismissedIn(login),
});

/** Opens a browser for a node: with the login's cookies and storage, restricted to its hosts. Closes it afterwards. */
export async function browseAs<T>(
  means: BrowseMeans,
  signal: AbortSignal,
  work: (browser: StepBrowser) => Promise<T>,
): Promise<T> {
  return await withBrowser(means, signal, async (browser) => {
    return await work(stepBrowser(means, browser, "node", signal));
  });
}

/** Opens a browser for a login. Its cookies go into the jar of the login. */
export async function browseToLogIn<T>(
  means: BrowseMeans,
  signal: AbortSignal,
  work: (browser: LoginBrowser) => Promise<T>,
): Promise<T> {
  return await withBrowser(means, signal, async (browser) => {
    const capture = async (): Promise<CapturedSession> =>
      await ours(async () => await captureInto(means, browser));
    return await work({ ...stepBrowser(means, browser, "login", signal), capture });
  });
}

async function withBrowser<T>(
  { browsers, origins, resources, login, jar, beforeHop, mayLeave, ...more }: BrowseMeans,
  signal: AbortSignal,
  work: (browser: OpenBrowser) => Promise<T>,
): Promise<T> {
  let refusal: OutboundError | null = null;
  const admit = async (origin: URL): Promise<void> => {
    mayLeave?.();
    await beforeHop?.(origin, true).catch((error: unknown) => {
      if (error instanceof OutboundError) refusal ??= error;
      throw error;
    });
  };
  // Scripts from there run in pages that get the credential.
  for (const origin of resources) await admit(new URL(origin));
  try {
    const browser = await ours(
      async () =>
        await browsers.open({
          hosts: origins,
          resources,
          state: new Secret(stateOf(login, jar)),
          beforeConnect: admit,
          timeoutMs: limits.timerMsMax,
          tape: more.tape,
          downloadBytesMax: more.downloadBytesMax,
          whileWaiting: more.whileWaiting,
          signal,
        }),
    );
    try {
      await failpoint("browser.after_open");
      for (const locator of more.dismissed ?? [])
        await clickAway(browser.page, locate(browser.page, locator), limits.browserStepMs);
      const done = await work(browser);
      await failpoint("browser.after_steps");
      return done;
    } finally {
      await browser.close();
    }
  } catch (error) {
    signal.throwIfAborted();
    // What the page says about it is that it can't be reached.
    throw error instanceof StepFailure && refusal !== null ? refusal : error;
  }
}

function stepBrowser(
  { origins, expired, nets }: BrowseMeans,
  browser: OpenBrowser,
  of: AnswerOf,
  signal: AbortSignal,
): StepBrowser {
  let begun: BegunStep | null = null;
  const cleaner = async (): Promise<((text: string) => string) | null> => {
    const both = nets();
    if (both === null || browser.failure !== null) return null;
    // What the login has been given so far is not known from answers, as in logins by requests.
    if (of === "login") both.add(await tokensOf(browser));
    return (text) => withoutTokens(both.message(text), of);
  };
  return {
    signal,
    expired: expired ?? null,
    page: browser.page,
    origins,
    enterSecret: async (field, value, how, timeoutMs) =>
      await ours(async () => await browser.fillSecret(field, new Secret(value), { how, timeoutMs })),
    refused: () => browser.refused(),
    cleaner,
    look: async (page, marked) => {
      const clean = await cleaner();
      return clean && (await lookAtPage(browser, page, marked, clean));
    },
    begin: (step) => {
      begun = step;
    },
    picture: async () => {
      const shown = begun;
      // No page of a login is shown to anybody while it is in progress.
      if (of === "login" || shown === null) return null;
      const clean = await cleaner();
      if (clean === null) return null;
      const png = await browser.takePicture(shown.page, {
        isSecret: (text) => clean(text) !== text,
        marked: [],
        bytesMax: limits.livePictureBytesMax,
      });
      return png === null || (await shown.isExpired()) ? null : { step: shown.step, png };
    },
    ended: () => (browser.failure === null ? null : failureOf(browser.failure)),
  };
}

/** Errors of the browser as failures of the step. */
async function ours<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof BrowserError ? failureOf(error) : error;
  }
}

const CODES: Readonly<Record<BrowserFailure, StepFailureCode>> = {
  browser_missing: "browser_missing",
  // Only a run that may queue gets it, and it does.
  no_place: "unexpected",
  browser_crashed: "browser_crashed",
  browser_memory: "browser_crashed",
  origin_refused: "blocked",
  timeout: "timeout",
  cancelled: "timeout",
  not_found: "not_found",
  ambiguous: "ambiguous",
  not_editable: "not_ready",
  gone: "not_ready",
  secret_refused: "secret_refused",
  state_too_large: "unexpected",
  download_too_large: "unexpected",
  page: "unexpected",
};

/** About an element the step itself knows more: what the page has instead. */
const OF_ELEMENTS: readonly BrowserFailure[] = ["not_found", "ambiguous"];

const failureOf = ({ failure, message }: BrowserError): StepFailure =>
  new StepFailure(CODES[failure], OF_ELEMENTS.includes(failure) ? "" : message);

/** The state of a browser login; of any other login, its cookies. */
function stateOf(login: Secret<LoginSession> | null, jar: SessionJar): BrowserState {
  const state = login?.reveal().browser;
  return state === undefined
    ? { cookies: jar.cookies(), origins: [], session: [] }
    : (state as unknown as BrowserState);
}

async function captureInto({ jar, origins }: BrowseMeans, browser: OpenBrowser): Promise<CapturedSession> {
  const { state, notRestorable } = await browser.captureState();
  jar.add(state.cookies);
  if (jar.overflow !== null) throw new StepFailure("unexpected", jar.overflow);
  const local = new Map(
    state.origins.map(({ origin, localStorage }) => [
      origin,
      localStorage.map(({ name, value }) => [name, value] as const),
    ]),
  );
  const session = new Map(state.session.map(({ origin, entries }) => [origin, entries]));
  // Where two hosts have the same name, the first one's counts.
  const merged = (kind: ReadonlyMap<string, readonly (readonly [string, string])[]>) =>
    Object.fromEntries(origins.toReversed().flatMap((origin) => kind.get(origin) ?? []));
  return {
    state: state as unknown as JsonObject,
    storage: { local: merged(local), session: merged(session) },
    isRestorable: notRestorable.length === 0,
    secrets: tokensIn(storedIn(state)),
  };
}

/** Cookies and tokens that a browser holds; none if they can't be read. */
async function tokensOf(browser: OpenBrowser): Promise<readonly string[]> {
  const captured = await browser.captureState().catch(() => null);
  if (captured === null) return [];
  const { cookies } = captured.state;
  return [...cookieSecrets(cookies.map(({ value }) => value)), ...tokensIn(storedIn(captured.state))];
}

/** The values of local and session storage. */
const storedIn = ({ origins, session }: BrowserState): readonly string[] => [
  ...origins.flatMap(({ localStorage }) => localStorage.map(({ value }) => value)),
  ...session.flatMap(({ entries }) => entries.map(([, value]) => value)),
];

const TOKENS_MAX = 100;

/** Texts of the storage that may be tokens: long, without spaces. They are redacted wherever a target repeats them. */
function tokensIn(values: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const visit = (value: Json): void => {
    if (typeof value === "string" && /^[\w\-.~+/=|:%]{16,8192}$/.test(value)) found.add(value);
    if (Array.isArray(value)) for (const each of value) visit(each as Json);
    if (isJsonObject(value)) for (const each of Object.values(value)) visit(each);
  };
  for (const text of values) {
    visit(text);
    if (/^\s*[[{]/.test(text)) visit(parse(text));
  }
  return [...found].slice(0, TOKENS_MAX);
}

function parse(text: string): JsonObject | null {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return null;
  }
}
