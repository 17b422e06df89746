import type { FastifyReply, FastifyRequest } from "fastify";
import type { HostedSession } from "#actions/sessions/hosted-session.ts";
import { isOpenedElsewhere, noteOpening } from "#actions/sessions/note-opening.ts";
import type { Services } from "#actions/services.ts";
import { limits } from "#domain/limits.ts";
import { isSecure, readCookie } from "./cookies.ts";

const nameOf = (services: Services): string => `${isSecure(services) ? "__Host-" : ""}latchkey-browser`;

const browserOf = (services: Services, request: FastifyRequest): string | null =>
  readCookie(request.headers.cookie, nameOf(services)) ?? null;

/**
 * Whether another browser, possibly another person's, has opened the link before this one. The first browser gets a cookie by which it is recognised
 * later; only for a navigation, not for a prefetch or a link preview.
 */
export async function openHere(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  { session }: HostedSession,
): Promise<boolean> {
  const browser = browserOf(services, request);
  if (session.firstBrowser !== null || !isVisit(request)) return isOpenedElsewhere(session, browser);
  const known = await noteOpening(services, session, browser);
  if (known !== null && known !== browser) {
    const attributes = ["Path=/", "HttpOnly", "SameSite=Lax", `Max-Age=${limits.sessionLifetimeMs / 1_000}`];
    if (isSecure(services)) attributes.push("Secure");
    reply.header("Set-Cookie", [`${nameOf(services)}=${known}`, ...attributes].join("; "));
  }
  return false;
}

/** The same for a form that is shown again. */
export const wasOpenedElsewhere = (
  services: Services,
  request: FastifyRequest,
  { session }: HostedSession,
): boolean => isOpenedElsewhere(session, browserOf(services, request));

function isVisit({ method, headers }: FastifyRequest): boolean {
  const isFetchedAhead = headers["sec-purpose"] !== undefined || headers["purpose"] !== undefined;
  return method === "GET" && headers["sec-fetch-dest"] === "document" && !isFetchedAhead;
}
