import * as oauth from "oauth4webapi";
import { shorten } from "#domain/config-problem.ts";
import { isJsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import type { GateOptions } from "./oauth-transport.ts";

/** Of this process, oldest out first: every run and every sign-in asks. */
const found = new Map<string, { readonly server: oauth.AuthorizationServer; readonly atMs: number }>();
const KEPT_MAX = 200;

/** What an issuer says of itself: OpenID Connect discovery, else RFC 8414. Throws LoginFailure, OutboundError. */
export async function findMetadata(issuer: URL, options: GateOptions): Promise<oauth.AuthorizationServer> {
  const kept = found.get(issuer.href);
  if (kept && performance.now() - kept.atMs < limits.oauthMetadataMs) return kept.server;
  const server = (await discover(issuer, "oidc", options)) ?? (await discover(issuer, "oauth2", options));
  if (server === null)
    throw new LoginFailure(
      `login (oauth2): ${issuer.host} has no metadata document; write \`authorization_url\` and \`token_url\``,
    );
  if (found.size >= KEPT_MAX) found.delete(found.keys().next().value ?? "");
  found.set(issuer.href, { server, atMs: performance.now() });
  return server;
}

/** Null: there is no document at this place. */
async function discover(
  issuer: URL,
  algorithm: "oidc" | "oauth2",
  options: GateOptions,
): Promise<oauth.AuthorizationServer | null> {
  const response = await oauth.discoveryRequest(issuer, { algorithm, ...options });
  if (response.status === 404) return null;
  const copy = response.clone();
  try {
    return await oauth.processDiscoveryResponse(issuer, response);
  } catch (error) {
    if (error instanceof OutboundError) throw error;
    throw new LoginFailure(
      `login (oauth2): the metadata document of ${issuer.host} can't be used: ${await explainDocument(issuer, copy)}`,
    );
  }
}

/** What is wrong with it. An issuer is public, and is shown when it is an address. */
async function explainDocument(issuer: URL, response: Response): Promise<string> {
  if (response.status !== 200) return `it is answered with ${response.status}`;
  const document: unknown = await response.json().catch(() => null);
  if (!isJsonObject(document)) return "it is not a JSON object";
  const { issuer: own } = document;
  if (typeof own !== "string" || !URL.canParse(own)) return "it names no issuer";
  const { origin, pathname } = new URL(own);
  return new URL(own).href === issuer.href
    ? "it lacks what such a document must have"
    : `it is of the issuer ${shorten(origin + pathname.replace(/\/$/, ""), 200)}; write that as \`issuer\``;
}
