import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { hashState, leavesForTarget, signInHost, type BeginOutcome } from "#actions/begin-oauth.ts";
import { finishOAuth } from "#actions/finish-oauth.ts";
import type { Services } from "#actions/services.ts";
import { limits } from "#domain/limits.ts";
import type { Strategy } from "#domain/strategy.ts";
import type { SignInNotice } from "./pages/form-page.ts";
import { hostedHeaders } from "./pages/headers.ts";
import { renderExpired, renderSignInUnknown } from "./pages/message-pages.ts";
import { sendDone, sendPage } from "./send-page.ts";

const NOTICES: readonly SignInNotice[] = ["refused", "failed"];
const COOKIE_HASH_BYTES = 8;

/** The host whose own login the form leads to; null: what is asked for is typed on the form. */
export const signInHostOf = (strategy: Strategy): string | null =>
  leavesForTarget(strategy) ? signInHost(strategy) : null;

/** What an end user is told who comes back without a connection. */
export function noticeOf(request: FastifyRequest, strategy: Strategy): SignInNotice | null {
  const { again } = request.query as { again?: unknown };
  return leavesForTarget(strategy) ? (NOTICES.find((notice) => notice === again) ?? null) : null;
}

/**
 * A cookie for each `state`, so that two tabs don't disturb each other. `__Host-` ties it to this host and to TLS; browsers
 * refuse it over plain http, where an installation on loopback does without the prefix.
 */
function cookieName(services: Services, state: string): string {
  const hash = hashState(state).subarray(0, COOKIE_HASH_BYTES).toString("hex");
  return `${isSecure(services) ? "__Host-" : ""}latchkey-sign-in-${hash}`;
}

const isSecure = (services: Services): boolean => services.publicUrl().startsWith("https:");

/** To the target's own login, with what will show on the way back that it is the same browser. */
export async function sendToTarget(
  services: Services,
  reply: FastifyReply,
  { url, state, cookie }: Extract<BeginOutcome, { kind: "leave" }>,
): Promise<FastifyReply> {
  // Lax: the target sends the browser back by a navigation from another site.
  const attributes = ["Path=/", "HttpOnly", "SameSite=Lax", `Max-Age=${limits.oauthStateMs / 1_000}`];
  if (isSecure(services)) attributes.push("Secure");
  return await reply
    .headers(hostedHeaders("page"))
    .header("Set-Cookie", [`${cookieName(services, state)}=${cookie}`, ...attributes].join("; "))
    .header("Location", url)
    .code(303)
    .send();
}

/** Where targets send browsers back to. GET only: who looks at a link with HEAD has not signed in anywhere. */
export function registerOAuthReturn(pages: FastifyInstance, services: Services, style: string): void {
  pages.get("/oauth/:account/:strategy", async (request, reply) => await getReturn(services, request, reply));
  // The pages' style sheet is relative to their address.
  pages.get("/oauth/:account/style.css", async (_request, reply) =>
    reply
      .headers({ "Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff" })
      .type("text/css; charset=utf-8")
      .send(style),
  );
}

async function getReturn(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { account, strategy } = request.params as { account: string; strategy: string };
  const outcome = await finishOAuth(services, {
    accountSlug: account,
    strategyId: strategy,
    parameters: new URL(request.url, "http://here.invalid").searchParams,
    cookieOf: (state) => readCookie(request.headers.cookie, cookieName(services, state)),
  });
  switch (outcome.kind) {
    case "unknown":
      return await sendPage(reply, 400, renderSignInUnknown());
    case "expired":
      return await sendPage(reply, 410, renderExpired());
    case "completed":
      return await sendDone(reply, outcome.hosted);
    case "retry": {
      // The session's own page again: what came back is out of the address, and the button is there.
      const again = `${services.publicUrl()}/connect/${outcome.token}?again=${outcome.reason}`;
      return await reply.headers(hostedHeaders("page")).header("Location", again).code(303).send();
    }
  }
}

/** Undefined when it is there twice: one of them is not ours. */
function readCookie(header: string | undefined, name: string): string | undefined {
  const values = (header ?? "").split(";").flatMap((pair) => {
    const [key = "", value = ""] = pair.trim().split("=", 2);
    return key === name ? [value] : [];
  });
  return values.length === 1 ? values[0] : undefined;
}
