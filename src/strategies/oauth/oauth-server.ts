import * as oauth from "oauth4webapi";
import { secretReference, type AccountSecret, type SecretReference } from "#domain/account-secret.ts";
import { readConfig } from "#domain/read-config.ts";
import { isServiceVariable } from "#domain/service-variable.ts";
import type { Strategy } from "#domain/strategy.ts";
import { must } from "#lib/assert.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { renderAt } from "#strategies/login-expressions.ts";
import { textPairs } from "#strategies/login-headers.ts";
import type { OAuthAccess } from "./oauth-access.ts";
import { findMetadata } from "./oauth-metadata.ts";
import { grantOf, oauthSchema, type OAuthConfig } from "./oauth-schema.ts";
import { throughGate, type GateOptions } from "./oauth-transport.ts";
import { renderEndpoint } from "./oauth-url.ts";

/** The public part of a target's authorization server, and of the client that the operator has registered there. */
export interface OAuthSite {
  readonly config: OAuthConfig;
  readonly server: oauth.AuthorizationServer;
  readonly client: oauth.Client;
  /** `extra_params`, rendered. */
  readonly extra: readonly (readonly [name: string, value: string])[];
  /** Whether the issuer is known, so that `iss` can be compared with it. */
  readonly knowsIssuer: boolean;
  /** The origins in the operator's document: nothing is sent anywhere else. */
  readonly origins: readonly string[];
  readonly insecure: boolean;
}

/** The server with the client's authentication, and the way to send requests. */
export interface OAuthServer extends OAuthSite {
  readonly clientAuth: oauth.ClientAuth;
  readonly options: GateOptions;
}

/** The client's secret is sealed, and this process can't open it. */
export class SealedSecret extends LoginFailure {}

const PLACE = "login (oauth2)";

export function readOAuthConfig(strategy: Strategy): OAuthConfig {
  const { type: _type, ...config } = strategy.login;
  return readConfig(oauthSchema, config);
}

/** Like openOAuthSite, but with the client's secret. Throws LoginFailure, OutboundError. */
export async function openOAuthServer(access: OAuthAccess, strategy: Strategy): Promise<OAuthServer> {
  const site = await openOAuthSite(access, strategy);
  return { ...site, ...(await authenticateClient(access, strategy, site)) };
}

/** Renders the configuration and finds the endpoints. Throws LoginFailure, OutboundError. */
export async function openOAuthSite(access: OAuthAccess, strategy: Strategy): Promise<OAuthSite> {
  const config = readOAuthConfig(strategy);
  const urls = await renderUrls(access, config);
  const named = [urls.issuer, urls.token].flatMap((url) => (url === undefined ? [] : [new URL(url).origin]));
  // Secrets are sent only to origins in the operator's document, regardless of the metadata document.
  const origins = [...new Set([...strategy.hosts, ...named])];
  // `apply` accepts plain http only for loopback hosts; the endpoints of such a server may then be http, too.
  const insecure = named.some((origin) => origin.startsWith("http:"));
  const options = throughGate(access, origins, insecure);
  const needsAuthorization = grantOf(config) === "authorization_code";
  const isWhole = urls.token !== undefined && (!needsAuthorization || urls.authorization !== undefined);
  const found =
    urls.issuer === undefined || isWhole ? undefined : await findMetadata(new URL(urls.issuer), options);
  const server: oauth.AuthorizationServer = {
    ...found,
    // Without a known issuer, this value is never compared with `iss`.
    issuer: found?.issuer ?? urls.issuer ?? must(named[0], "the origin of a checked token_url"),
    ...(urls.token === undefined ? {} : { token_endpoint: urls.token }),
    ...(urls.authorization === undefined ? {} : { authorization_endpoint: urls.authorization }),
  };
  checkServer(server, origins, needsAuthorization, insecure);
  return {
    config,
    server,
    client: { client_id: await renderText(access, "client_id", config.client_id) },
    extra: textPairs(
      await renderAt(access.expressions, `${PLACE}: extra_params`, config.extra_params ?? {}),
      `${PLACE}: extra_params`,
    ),
    knowsIssuer: urls.issuer !== undefined,
    origins,
    insecure,
  };
}

async function renderUrls(access: OAuthAccess, config: OAuthConfig) {
  const render = async (key: "issuer" | "authorization_url" | "token_url"): Promise<string | undefined> =>
    config[key] === undefined
      ? undefined
      : await renderEndpoint(access.expressions, config[key], `${PLACE}: ${key}`);
  return {
    issuer: await render("issuer"),
    authorization: await render("authorization_url"),
    token: await render("token_url"),
  };
}

function checkServer(
  server: oauth.AuthorizationServer,
  origins: readonly string[],
  needsAuthorization: boolean,
  insecure: boolean,
): void {
  const origin = originOf(server.token_endpoint);
  if (origin === null)
    throw new LoginFailure(`${PLACE}: the issuer's metadata has no token endpoint; specify \`token_url\``);
  if (!origins.includes(origin))
    throw new LoginFailure(
      `${PLACE}: the issuer's token endpoint is at ${origin}, which the strategy does not name; if that is correct, specify \`token_url\``,
    );
  if (!needsAuthorization) return;
  const authorization = originOf(server.authorization_endpoint);
  if (authorization === null || (!insecure && !authorization.startsWith("https:")))
    throw new LoginFailure(
      `${PLACE}: the issuer's metadata has no authorization endpoint with https; specify \`authorization_url\``,
    );
  const methods = server.code_challenge_methods_supported;
  // docs/decisions/0020: PKCE with S256, always.
  if (methods !== undefined && !methods.includes("S256"))
    throw new LoginFailure(`${PLACE}: the issuer does not support PKCE with S256`);
}

function originOf(url: unknown): string | null {
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  const { protocol, origin, username, password } = new URL(url);
  return /^https?:$/.test(protocol) && username === "" && password === "" ? origin : null;
}

async function renderText(
  access: OAuthAccess,
  key: "client_id" | "client_secret",
  template: string,
): Promise<string> {
  const value = await renderAt(access.expressions, `${PLACE}: ${key}`, template);
  if (typeof value !== "string" || value === "")
    throw new LoginFailure(`${PLACE}: ${key} must evaluate to a string that is not empty`);
  return value;
}

/** An account secret is sent only to its own origins. Throws LoginFailure, SealedSecret. */
export async function authenticateClient(
  access: OAuthAccess,
  strategy: Strategy,
  { config, server, origins: named, insecure }: OAuthSite,
): Promise<Pick<OAuthServer, "clientAuth" | "options">> {
  const through = (origins: readonly string[]): GateOptions => throughGate(access, origins, insecure);
  const reference = secretReference(strategy.login);
  if (reference !== null) {
    const { value, origins } = await findSecret(access, strategy, reference, server);
    return {
      clientAuth: authWith(value, config, server),
      options: through(named.filter((origin) => origins.includes(origin))),
    };
  }
  const clientAuth =
    typeof config.client_secret === "string"
      ? authWith(await renderText(access, "client_secret", config.client_secret), config, server)
      : oauth.None();
  return { clientAuth, options: through(named) };
}

function authWith(secret: string, config: OAuthConfig, server: oauth.AuthorizationServer): oauth.ClientAuth {
  const taken = server.token_endpoint_auth_methods_supported;
  // RFC 8414: the default is `client_secret_basic`.
  const isBasic = taken === undefined || taken.includes("client_secret_basic");
  const method = config.token_auth ?? (isBasic ? "client_secret_basic" : "client_secret_post");
  return method === "client_secret_basic" ? oauth.ClientSecretBasic(secret) : oauth.ClientSecretPost(secret);
}

/**
 * Finds the secret that the document refers to, if it may be sent to this server. `apply` makes the same check, but a strategy's
 * version may have entered the database by other means. Throws LoginFailure.
 */
async function findSecret(
  access: OAuthAccess,
  { account }: Strategy,
  reference: SecretReference,
  server: oauth.AuthorizationServer,
): Promise<AccountSecret> {
  const { kind, name } = reference;
  if (kind === "variable" && isServiceVariable(name))
    throw new LoginFailure(`${PLACE}: ${name} is one of the service's own variables, which are never sent`);
  const origin = originOf(server.token_endpoint) ?? "";
  const set = `latchkey secrets set --account ${account} ${name} --for ${origin}`;
  const found = await access.clientSecret(reference);
  switch (found.kind) {
    case "found":
      if (found.origins.includes(origin)) return found;
      throw new LoginFailure(
        `${PLACE}: the secret ${name} may not be sent to ${origin}, where the token endpoint is, only to ${found.origins.join(", ")}; ` +
          `correct \`token_url\`, or allow it with the value: ${set}`,
      );
    case "missing":
      throw new LoginFailure(
        kind === "variable"
          ? `${PLACE}: the environment variable ${name} is not set, or no strategy of the account named it when the service started; ` +
              `store it as a secret: ${set}`
          : `${PLACE}: the account has no secret ${name}; set it: ${set}`,
      );
    case "sealed":
      throw new SealedSecret(
        `${PLACE}: this process has only the api role and can't open the secret ${name}, and no process with the worker role ` +
          "answered: start one, or provide the secret to this process in LATCHKEY_CLIENT_SECRETS_FILE",
      );
    case "broken":
      throw new LoginFailure(
        `${PLACE}: the secret ${name} can't be opened: its row was damaged or changed, or this worker lacks its master key; ` +
          `\`latchkey doctor\` shows which; set it again: ${set}`,
      );
  }
}
