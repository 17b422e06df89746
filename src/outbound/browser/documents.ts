import type { BrowserContext, CDPSession, Frame, Page, Request, Route } from "playwright-core";
import type { GateProxy } from "#outbound/gate-proxy.ts";
import { mayBeDocument, mayBeLoaded, type Reach } from "./reach.ts";
import type { RefusedRequests } from "./refused-requests.ts";
import {
  answerPaused,
  answerRoute,
  isAnswered,
  patternsOf,
  recordPaused,
  type PageTape,
  type PausedRequest,
} from "./tape.ts";

/** Not `data:` and the like, which have nothing to ask. */
const isOfNetwork = (url: string): boolean => /^https?:/.test(url);

/** What the guard does when a foreign document got through. */
export type OnForeignDocument = (origin: string) => void;

/**
 * Decides what may be a document: only what comes from `hosts`. The gate can't, because it sees hosts and ports alone. Three places
 * see each a part (docs/decisions/0038): the route hook, the first request of a window and the kind of every request; a session for
 * each page and each frame of another site, every hop of a redirect; and what neither has stopped shows in its response. Returns the
 * function that waits until a page has its session.
 */
export async function guardDocuments(
  context: BrowserContext,
  reach: Reach,
  proxy: Pick<GateProxy, "username" | "password">,
  refused: RefusedRequests,
  { onForeign, tape }: { readonly onForeign: OnForeignDocument; readonly tape?: PageTape | undefined },
): Promise<(page: Page) => Promise<void>> {
  const mayOpen = (url: string): boolean => {
    const parsed = URL.parse(url);
    return parsed !== null && mayBeDocument(reach, parsed);
  };
  const guard: Guard = { reach, mayOpen, refused, tape };
  await context.route(
    () => true,
    // The browser may have ended: what a handler throws, nobody catches.
    async (route, request) => await decideRoute(guard, route, request).catch(() => undefined),
  );
  const hold = async (target: Page | Frame): Promise<void> => {
    const session = await context.newCDPSession(target);
    session.on("Fetch.requestPaused", (paused) => {
      // The page may be gone by now.
      decidePaused(guard, session, paused).catch(() => undefined);
    });
    // Some releases of Chromium ask only one of the sessions for the proxy's credentials, which may be this one.
    session.on("Fetch.authRequired", ({ requestId, authChallenge: { source } }) => {
      const authChallengeResponse =
        source === "Proxy"
          ? { response: "ProvideCredentials" as const, username: proxy.username, password: proxy.password }
          : { response: "Default" as const };
      session.send("Fetch.continueWithAuth", { requestId, authChallengeResponse }).catch(() => undefined);
    });
    await session.send("Fetch.enable", {
      patterns: patternsOf(tape),
      handleAuthRequests: true,
    });
  };
  const held = new WeakMap<Page, Promise<void>>();
  const begin = (page: Page): void => {
    const holding = hold(page);
    holding.catch(() => undefined);
    held.set(page, holding);
    page.on("framenavigated", (frame) => {
      const { protocol = "", origin = "" } = URL.parse(frame.url()) ?? {};
      if ((protocol === "http:" || protocol === "https:") && !mayOpen(frame.url())) onForeign(origin);
      // A frame of the page's own site has no session of its own, and needs none.
      if (frame.parentFrame() !== null) hold(frame).catch(() => undefined);
    });
  };
  context.on("page", begin);
  context.on("response", (response) => {
    if (response.request().isNavigationRequest() && !mayOpen(response.url()))
      onForeign(originOf(response.url()));
  });
  return async (page) => await held.get(page);
}

interface Guard {
  readonly reach: Reach;
  readonly mayOpen: (url: string) => boolean;
  readonly refused: RefusedRequests;
  readonly tape: PageTape | undefined;
}

/** What the driver's hook sees. */
async function decideRoute({ reach, refused, tape }: Guard, route: Route, request: Request): Promise<void> {
  const isOpen = isAllowed(reach, request);
  const isPlayed = isOpen && tape?.answer !== undefined && isOfNetwork(request.url());
  if (isPlayed && (await answerRoute(tape, route, request))) return;
  if (isOpen && !isPlayed) return await route.continue();
  refused.add(originOf(request.url()), request.resourceType());
  await route.abort("blockedbyclient");
}

/** What a session of ours sees: each hop of a redirect, and answers that are recorded. */
async function decidePaused(
  { mayOpen, refused, tape }: Guard,
  session: CDPSession,
  paused: PausedRequest,
): Promise<void> {
  const { requestId, resourceType, request } = paused;
  if (isAnswered(paused)) {
    if (tape !== undefined) await recordPaused(tape, session, paused);
    await session.send("Fetch.continueRequest", { requestId });
    return;
  }
  const isOpen = resourceType !== "Document" || mayOpen(request.url);
  const isPlayed = isOpen && tape?.answer !== undefined && isOfNetwork(request.url);
  if (isPlayed && (await answerPaused(tape, session, paused))) return;
  if (isOpen && !isPlayed) {
    await session.send("Fetch.continueRequest", { requestId });
    return;
  }
  refused.add(originOf(request.url), resourceType.toLowerCase());
  await session.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" });
}

function isAllowed(reach: Reach, request: Request): boolean {
  const url = URL.parse(request.url());
  if (url === null) return false;
  return request.isNavigationRequest() ? mayBeDocument(reach, url) : mayBeLoaded(reach, url);
}

/** `null` for `data:` and the like. */
const originOf = (url: string): string => URL.parse(url)?.origin ?? "null";
