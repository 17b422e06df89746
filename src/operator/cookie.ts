import type { FastifyReply, FastifyRequest } from "fastify";
import type { KnownBrowser, KnownBrowserCookies } from "#actions/operators/known-browser.ts";
import { hashState, type AuthorizationRedirect } from "#actions/operators/oidc-flow.ts";
import type { Needs, Services } from "#actions/services.ts";
import { limits } from "#domain/limits.ts";

/** docs/decisions/0022. The prefix requires TLS, so it is omitted without TLS. */
function cookieOf(services: Needs<"publicUrl">): { readonly name: string; readonly secure: string } {
  return services.publicUrl().startsWith("https:")
    ? { name: "__Host-latchkey_operator", secure: "; Secure" }
    : { name: "latchkey_operator", secure: "" };
}

/** No page can read it, and it is not sent with requests from other sites. It ends with the browser's session. */
export function setSessionCookie(reply: FastifyReply, services: Services, token: string): void {
  const { name, secure } = cookieOf(services);
  reply.header("Set-Cookie", `${name}=${token}; Path=/; HttpOnly; SameSite=Strict${secure}`);
}

export function clearSessionCookie(reply: FastifyReply, services: Services): void {
  const { name, secure } = cookieOf(services);
  reply.header("Set-Cookie", `${name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0${secure}`);
}

/** Empty if there is none, or if there are two, because another party may have set one. */
export const readSessionToken = (request: FastifyRequest, services: Services): string =>
  readCookie(request, cookieOf(services).name);

function readCookie(request: FastifyRequest, name: string): string {
  const values = (request.headers.cookie ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? (values[0] ?? "") : "";
}

const STATE_HASH_BYTES = 8;

/** One for each `state`, so that two tabs don't disturb each other. */
function tripCookieOf(services: Services, state: string): { readonly name: string; readonly secure: string } {
  const { name, secure } = cookieOf(services);
  return { name: `${name}_oidc_${hashState(state).subarray(0, STATE_HASH_BYTES).toString("hex")}`, secure };
}

/**
 * The cookie of a browser while it is at the provider. Strict like the session's: the provider redirects the browser to a page of
 * the dashboard, which needs no cookie, and that page calls the API from our own site.
 */
export function setOidcCookie(
  reply: FastifyReply,
  services: Services,
  { state, cookie }: AuthorizationRedirect,
): void {
  const { name, secure } = tripCookieOf(services, state);
  const age = `Max-Age=${limits.oauthStateMs / 1_000}`;
  reply.header("Set-Cookie", `${name}=${cookie}; Path=/; HttpOnly; SameSite=Strict; ${age}${secure}`);
}

export function clearOidcCookie(reply: FastifyReply, services: Services, state: string): void {
  const { name, secure } = tripCookieOf(services, state);
  reply.header("Set-Cookie", `${name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0${secure}`);
}

export const readTripCookie = (request: FastifyRequest, services: Services, state: string): string =>
  readCookie(request, tripCookieOf(services, state).name);

/** The most operators per browser whose cookies are read. */
const KNOWN_BROWSERS_MAX = 20;

/** `__Host-` requires the path `/`, but only the operator API needs the cookie. */
function knownBrowserCookieOf({ publicUrl }: Needs<"publicUrl">): {
  readonly prefix: string;
  readonly path: string;
  readonly secure: string;
} {
  const { protocol, pathname } = new URL(publicUrl());
  const path = `${pathname.replace(/\/$/, "")}/operator/v1`;
  return protocol === "https:"
    ? { prefix: "__Secure-latchkey_operator_browser_", path, secure: "; Secure" }
    : { prefix: "latchkey_operator_browser_", path, secure: "" };
}

/** Outlives the session: it records that an operator has signed in here before, and grants no access. One for each operator. */
export function setKnownBrowserCookie(reply: FastifyReply, services: Services, known: KnownBrowser): void {
  const { prefix, path, secure } = knownBrowserCookieOf(services);
  const age = `Max-Age=${limits.knownBrowserMs / 1_000}`;
  reply.header(
    "Set-Cookie",
    `${prefix}${known.nameKey}=${known.value}; Path=${path}; HttpOnly; SameSite=Strict; ${age}${secure}`,
  );
}

/** By the operators' name keys, as the browser sends them. */
export function readKnownBrowsers(request: FastifyRequest, services: Services): KnownBrowserCookies {
  const { prefix } = knownBrowserCookieOf(services);
  const pairs = (request.headers.cookie ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(prefix))
    .slice(0, KNOWN_BROWSERS_MAX);
  return new Map(
    pairs.map((pair): [string, string] => {
      const at = pair.indexOf("=");
      return [pair.slice(prefix.length, at), pair.slice(at + 1)];
    }),
  );
}
