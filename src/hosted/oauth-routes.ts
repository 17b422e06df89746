import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { hashState, leavesForTarget, signInHost, type BeginOutcome } from "#actions/sessions/begin-oauth.ts";
import { hostedUrl } from "#actions/sessions/create-credential-session.ts";
import { finishOAuth } from "#actions/sessions/finish-oauth.ts";
import type { Services } from "#actions/services.ts";
import { textIn, type Language } from "#domain/language.ts";
import { limits } from "#domain/limits.ts";
import type { Strategy } from "#domain/strategy.ts";
import { isSecure, readCookie } from "./cookies.ts";
import { hostedHeaders } from "./pages/headers.ts";
import { renderExpired, renderSignInSpent, renderSignInUnknown } from "./pages/message-pages.ts";
import { renderWindow } from "./pages/window-pages.ts";
import { sendDone, sendPage, shellFor, type Handler } from "./send-page.ts";
import { chosenLanguage } from "./texts/wordings.ts";
import { settling } from "./unsettled.ts";

const NOTICES = ["refused", "failed"] as const;
type SignInNotice = (typeof NOTICES)[number];
const COOKIE_HASH_BYTES = 8;

/** The host of the target's own login to which the form leads; null: the form itself asks for the values. */
export const signInHostOf = (strategy: Strategy): string | null =>
  leavesForTarget(strategy) ? signInHost(strategy) : null;

/** The message for an end user who returns without a connection. */
export function noticeOf(request: FastifyRequest, strategy: Strategy): SignInNotice | null {
  const { again } = request.query as { again?: unknown };
  return leavesForTarget(strategy) ? (NOTICES.find((notice) => notice === again) ?? null) : null;
}

/**
 * A cookie for each `state`, so that two tabs don't disturb each other. `__Host-` ties it to this host and to TLS; browsers
 * refuse it over plain http, so an installation on loopback omits the prefix.
 */
function cookieName(services: Services, state: string): string {
  const hash = hashState(state).subarray(0, COOKIE_HASH_BYTES).toString("hex");
  return `${isSecure(services) ? "__Host-" : ""}latchkey-sign-in-${hash}`;
}

/** Redirects to the target's own login, with a cookie that identifies the browser on its return. */
export async function sendToTarget(
  services: Services,
  reply: FastifyReply,
  { url, state, cookie }: Extract<BeginOutcome, { kind: "leave" }>,
  /** `window`: one that a frame has opened. */
  { kind, language }: { readonly kind: "page" | "window"; readonly language: Language | null },
): Promise<FastifyReply> {
  // Lax: the target sends the browser back by a navigation from another site.
  const attributes = ["Path=/", "HttpOnly", "SameSite=Lax", `Max-Age=${limits.oauthStateMs / 1_000}`];
  if (isSecure(services)) attributes.push("Secure");
  // The chosen language is restored on return; nothing else about the end user is stored.
  const value = language === null ? cookie : `${cookie}.${language}`;
  return await reply
    .headers(hostedHeaders(kind))
    .header("Set-Cookie", [`${cookieName(services, state)}=${value}`, ...attributes].join("; "))
    .header("Location", url)
    .code(303)
    .send();
}

/** The redirect URI for targets. GET only: a HEAD request is never a sign-in. */
export function registerOAuthReturn(pages: FastifyInstance, services: Services): void {
  pages.get("/oauth/:account/:strategy", async (request, reply) => await getReturn(services, request, reply));
}

/** The hosted link of a session, in the language that was chosen. */
function linkOf(services: Services, sessionId: string, language: Language | null): string {
  const link = new URL(hostedUrl(services, sessionId));
  if (language !== null) link.searchParams.set("lang", language);
  return link.href;
}

const getReturn: Handler = async (services, request, reply) => {
  const { account, strategy } = request.params as { account: string; strategy: string };
  const parameters = new URL(request.url, "http://here.invalid").searchParams;
  const cookieOf = (state: string): readonly string[] =>
    (readCookie(request.headers.cookie, cookieName(services, state)) ?? "").split(".", 2);
  const language = chosenLanguage({ lang: cookieOf(parameters.get("state") ?? "")[1] });
  const callback = {
    accountSlug: account,
    strategyId: strategy,
    parameters,
    cookieOf: (state: string) => cookieOf(state)[0],
  };
  const outcome = await settling(async () => await finishOAuth(services, callback));
  const shell = shellFor(services, request, { language });
  switch (outcome.kind) {
    case "unknown":
      return await sendPage(reply, 400, renderSignInUnknown(shell));
    case "spent": {
      const { session, brand, backTo: back } = outcome.hosted;
      // The window of a frame has no link of its own.
      const again = session.embeddedSessionId === null ? linkOf(services, session.id, language) : null;
      return await sendPage(reply, 400, renderSignInSpent({ ...shell, brand }, { back, again }));
    }
    case "expired": {
      const { brand, backTo: back } = outcome.hosted;
      return await sendPage(reply, 410, renderExpired({ ...shell, brand }, { back }));
    }
    case "completed": {
      const { hosted } = outcome;
      if (hosted.session.embeddedSessionId === null)
        return await sendDone(services, request, reply, { hosted, language });
      const system = textIn(hosted.strategy.name, shell.wording.language);
      const page = renderWindow({ ...shell, brand: hosted.brand }, "done", system);
      return await sendPage(reply, 200, page, "window");
    }
    case "retry": {
      const { session, strategy, brand } = outcome.hosted;
      if (session.embeddedSessionId !== null) {
        const system = textIn(strategy.name, shell.wording.language);
        const page = renderWindow({ ...shell, brand }, outcome.reason, system);
        return await sendPage(reply, 200, page, "window");
      }
      // Redirects to the session's page: it removes the parameters from the address and shows the button again.
      const again = new URL(linkOf(services, session.id, language));
      again.searchParams.set("again", outcome.reason);
      return await reply.headers(hostedHeaders("page")).header("Location", again.href).code(303).send();
    }
  }
};
