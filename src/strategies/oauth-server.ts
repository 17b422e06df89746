import * as oauth from "oauth4webapi";
import { readConfig } from "#domain/read-config.ts";
import { isServiceVariable } from "#domain/service-variable.ts";
import type { Strategy } from "#domain/strategy.ts";
import { must } from "#lib/assert.ts";
import { LoginFailure } from "./define-login.ts";
import { renderAt } from "./login-expressions.ts";
import { textPairs } from "./login-headers.ts";
import type { OAuthAccess } from "./oauth-access.ts";
import { findMetadata } from "./oauth-metadata.ts";
import { grantOf, oauthSchema, type OAuthConfig } from "./oauth-schema.ts";
import { throughGate, type GateOptions } from "./oauth-transport.ts";
import { renderEndpoint } from "./oauth-url.ts";

/** A target's authorization server, and the client that the operator has registered there. */
export interface OAuthServer {
  readonly config: OAuthConfig;
  readonly server: oauth.AuthorizationServer;
  readonly client: oauth.Client;
  readonly clientAuth: oauth.ClientAuth;
  /** `extra_params`, rendered. */
  readonly extra: readonly (readonly [name: string, value: string])[];
  /** Whether the issuer has a name that an `iss` can be compared with. */
  readonly knowsIssuer: boolean;
  readonly options: GateOptions;
}

const PLACE = "login (oauth2)";

export function readOAuthConfig(strategy: Strategy): OAuthConfig {
  const { type: _type, ...config } = strategy.login;
  return readConfig(oauthSchema, config);
}

/** Renders the configuration and finds the endpoints. Throws LoginFailure, OutboundError. */
export async function openOAuthServer(access: OAuthAccess, strategy: Strategy): Promise<OAuthServer> {
  const config = readOAuthConfig(strategy);
  const urls = await renderUrls(access, config);
  const named = [urls.issuer, urls.token].flatMap((url) => (url === undefined ? [] : [new URL(url).origin]));
  // Secrets go to what the operator has written down and nowhere else, whatever a metadata document says.
  const origins = [...new Set([...strategy.hosts, ...named])];
  // `apply` lets plain http pass for loopback alone; what such a server names may then be http too.
  const insecure = named.some((origin) => origin.startsWith("http:"));
  const options = throughGate(access, origins, insecure);
  const needsAuthorization = grantOf(config) === "authorization_code";
  const isWhole = urls.token !== undefined && (!needsAuthorization || urls.authorization !== undefined);
  const found =
    urls.issuer === undefined || isWhole ? undefined : await findMetadata(new URL(urls.issuer), options);
  const server: oauth.AuthorizationServer = {
    ...found,
    // Where there is no name of an issuer, nothing is compared with this one.
    issuer: found?.issuer ?? urls.issuer ?? must(named[0], "the origin of a checked token_url"),
    ...(urls.token === undefined ? {} : { token_endpoint: urls.token }),
    ...(urls.authorization === undefined ? {} : { authorization_endpoint: urls.authorization }),
  };
  checkServer(server, origins, needsAuthorization, insecure);
  return {
    config,
    server,
    ...(await readClient(access, config, server)),
    extra: textPairs(
      await renderAt(access.expressions, `${PLACE}: extra_params`, config.extra_params ?? {}),
      `${PLACE}: extra_params`,
    ),
    knowsIssuer: urls.issuer !== undefined,
    options,
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
    throw new LoginFailure(`${PLACE}: the issuer names no token endpoint; write \`token_url\``);
  if (!origins.includes(origin))
    throw new LoginFailure(
      `${PLACE}: the issuer's token endpoint is at ${origin}, which the strategy does not name; write \`token_url\` if that is right`,
    );
  if (!needsAuthorization) return;
  const authorization = originOf(server.authorization_endpoint);
  if (authorization === null || (!insecure && !authorization.startsWith("https:")))
    throw new LoginFailure(
      `${PLACE}: the issuer names no authorization endpoint with https; write \`authorization_url\``,
    );
  const methods = server.code_challenge_methods_supported;
  // Design, page 6, 5.6: PKCE with S256, always.
  if (methods !== undefined && !methods.includes("S256"))
    throw new LoginFailure(`${PLACE}: the issuer does not take PKCE with S256`);
}

function originOf(url: unknown): string | null {
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  const { protocol, origin, username, password } = new URL(url);
  return /^https?:$/.test(protocol) && username === "" && password === "" ? origin : null;
}

async function readClient(
  access: OAuthAccess,
  config: OAuthConfig,
  server: oauth.AuthorizationServer,
): Promise<{ readonly client: oauth.Client; readonly clientAuth: oauth.ClientAuth }> {
  const text = async (key: "client_id" | "client_secret"): Promise<string> => {
    const value = await renderAt(access.expressions, `${PLACE}: ${key}`, must(config[key], key));
    if (typeof value !== "string" || value === "") throw new LoginFailure(`${PLACE}: ${key} gives no text`);
    return value;
  };
  const client: oauth.Client = { client_id: await text("client_id") };
  const { client_secret_env: variable } = config;
  if (variable === undefined && config.client_secret === undefined)
    return { client, clientAuth: oauth.None() };
  if (variable !== undefined && isServiceVariable(variable))
    throw new LoginFailure(
      `${PLACE}: ${variable} is a variable of the service itself, which is sent nowhere`,
    );
  const secret = variable === undefined ? await text("client_secret") : access.environmentSecret(variable);
  if (secret === undefined)
    throw new LoginFailure(
      `${PLACE}: the environment variable ${variable ?? ""} is not set; set it and restart the service`,
    );
  const taken = server.token_endpoint_auth_methods_supported;
  // RFC 8414: where nothing is said it is `client_secret_basic`.
  const isBasic = taken === undefined || taken.includes("client_secret_basic");
  const method = config.token_auth ?? (isBasic ? "client_secret_basic" : "client_secret_post");
  return {
    client,
    clientAuth:
      method === "client_secret_basic" ? oauth.ClientSecretBasic(secret) : oauth.ClientSecretPost(secret),
  };
}
