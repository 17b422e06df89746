import * as oauth from "oauth4webapi";
import { shorten } from "#domain/config-problem.ts";
import { isJsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import type { GateOptions } from "./oauth-transport.ts";

/** The number of documents that a process caches, for every run and sign-in. The oldest is evicted first. */
const found = new Map<string, { readonly server: oauth.AuthorizationServer; readonly atMs: number }>();
const KEPT_MAX = 200;

/** An issuer's metadata: by OpenID Connect discovery, else by RFC 8414. Throws LoginFailure, OutboundError. */
export async function findMetadata(issuer: URL, options: GateOptions): Promise<oauth.AuthorizationServer> {
  const kept = found.get(issuer.href);
  if (kept && performance.now() - kept.atMs < limits.oauthMetadataMs) return kept.server;
  const server = (await discover(issuer, "oidc", options)) ?? (await discover(issuer, "oauth2", options));
  if (server === null)
    throw new LoginFailure(
      `login (oauth2): ${issuer.host} has no metadata document; specify \`authorization_url\` and \`token_url\``,
    );
  if (found.size >= KEPT_MAX) found.delete(found.keys().next().value ?? "");
  found.set(issuer.href, { server, atMs: performance.now() });
  return server;
}

/** Returns null if there is no document at this URL. */
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

/** Explains the problem. An issuer is public, and is shown if it is a URL. */
async function explainDocument(issuer: URL, response: Response): Promise<string> {
  if (response.status !== 200) return `the answer has status ${response.status}`;
  const document: unknown = await response.json().catch(() => null);
  if (!isJsonObject(document)) return "it is not a JSON object";
  const { issuer: own } = document;
  if (typeof own !== "string" || !URL.canParse(own)) return "it names no issuer";
  const { origin, pathname } = new URL(own);
  return new URL(own).href === issuer.href
    ? "it lacks required members"
    : `it belongs to the issuer ${shorten(origin + pathname.replace(/\/$/, ""), 200)}; use that as \`issuer\``;
}
