import * as oauth from "oauth4webapi";
import { OutboundError } from "#domain/http-exchange.ts";
import { limits } from "#domain/limits.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import type { TokenSet } from "./oauth-access.ts";
import type { OAuthServer, OAuthSite } from "./oauth-server.ts";

/** The end user declined, or the target refused them, on the target's own page: `access_denied`. */
export class ConsentRefused extends Error {
  override readonly name = "ConsentRefused";
}

/** `invalid_grant`: the code or the refresh token is invalid, or no longer valid. */
export class GrantRefused extends LoginFailure {}

const PLACE = "login (oauth2)";
const LIFETIME_MS_MAX = 10 * 365 * 86_400_000;

/** The URL of the target's own login, with the parameters that bind the answer to this session. */
export async function writeAuthorizationUrl(
  { config, server, client, extra }: OAuthSite,
  request: { readonly redirectUri: string; readonly state: string; readonly verifier: string },
): Promise<string> {
  const url = new URL(server.authorization_endpoint ?? "");
  for (const [name, value] of extra) url.searchParams.set(name, value);
  const own: Readonly<Record<string, string>> = {
    response_type: "code",
    client_id: client.client_id,
    redirect_uri: request.redirectUri,
    ...((config.scopes ?? []).length > 0 && { scope: config.scopes?.join(" ") ?? "" }),
    state: request.state,
    code_challenge: await oauth.calculatePKCECodeChallenge(request.verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(own)) url.searchParams.set(name, value);
  return url.href;
}

/** Checks the answer of the target's own login and exchanges its code. Throws ConsentRefused, LoginFailure, OutboundError. */
export async function exchangeCode(
  target: OAuthServer,
  callback: URLSearchParams,
  request: {
    readonly redirectUri: string;
    readonly state: string;
    readonly verifier: string;
    readonly nowMs: number;
  },
): Promise<TokenSet> {
  const { server, client, clientAuth, options } = target;
  const parameters = new URLSearchParams(callback);
  // RFC 9207 compares issuers. Without one, only this strategy's redirect URI distinguishes servers.
  if (!target.knowsIssuer) parameters.delete("iss");
  const checked = await asOidcError("the answer of the target's own login", () =>
    oauth.validateAuthResponse(server, client, parameters, request.state),
  );
  const { redirectUri, verifier } = request;
  return await askForTokens(request.nowMs, async () => {
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      clientAuth,
      checked,
      redirectUri,
      verifier,
      options,
    );
    return await oauth.processAuthorizationCodeResponse(server, client, response);
  });
}

/** Requests new tokens for a refresh token. If the target doesn't rotate it, it is kept. */
export async function refreshTokens(
  target: OAuthServer,
  refreshToken: string,
  nowMs: number,
): Promise<TokenSet> {
  const { server, client, clientAuth, options } = target;
  return await askForTokens(
    nowMs,
    async () => {
      const response = await oauth.refreshTokenGrantRequest(
        server,
        client,
        clientAuth,
        refreshToken,
        options,
      );
      return await oauth.processRefreshTokenResponse(server, client, response);
    },
    refreshToken,
  );
}

/** Requests tokens without an end user's consent page: `grant: client_credentials` and `grant: password`. */
export async function requestTokens(
  target: OAuthServer,
  user: { readonly username: string; readonly password: string } | null,
  nowMs: number,
): Promise<TokenSet> {
  const { config, server, client, clientAuth, extra, options } = target;
  const parameters = new URLSearchParams(Object.fromEntries(extra));
  const scopes = config.scopes ?? [];
  if (scopes.length > 0) parameters.set("scope", scopes.join(" "));
  return await askForTokens(nowMs, async () => {
    if (user === null) {
      const response = await oauth.clientCredentialsGrantRequest(
        server,
        client,
        clientAuth,
        parameters,
        options,
      );
      return await oauth.processClientCredentialsResponse(server, client, response);
    }
    parameters.set("username", user.username);
    parameters.set("password", user.password);
    const response = await oauth.genericTokenEndpointRequest(
      server,
      client,
      clientAuth,
      "password",
      parameters,
      options,
    );
    return await oauth.processGenericTokenEndpointResponse(server, client, response);
  });
}

/** Revokes unused tokens, if the target has an endpoint for that. Returns false if they were not revoked. */
export async function revokeTokens(target: OAuthServer, tokens: TokenSet): Promise<boolean> {
  const { server, client, clientAuth, options } = target;
  if (server.revocation_endpoint === undefined) return false;
  try {
    const token = tokens.refreshToken ?? tokens.accessToken;
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, client, clientAuth, token, options),
    );
    return true;
  } catch {
    return false;
  }
}

async function askForTokens(
  nowMs: number,
  ask: () => Promise<oauth.TokenEndpointResponse>,
  refreshTokenBefore: string | null = null,
): Promise<TokenSet> {
  const answer = await asOidcError("the token endpoint", ask);
  // RFC 9449: a token that is bound to a key is useless here, because no login has a key.
  if (answer.token_type !== "bearer")
    throw new LoginFailure(`${PLACE}: the token endpoint returned a token of a type other than Bearer`);
  if (!/^[\x21-\x7e]+$/.test(answer.access_token))
    throw new LoginFailure(
      `${PLACE}: the token endpoint returned an access token with characters that are not allowed in a header`,
    );
  const refreshToken = answer.refresh_token ?? refreshTokenBefore;
  // No lifetime given: assumed to be short if there is a refresh token, unlimited if not.
  const assumedMs = refreshToken === null ? null : limits.oauthAssumedLifetimeMs;
  const lifetimeMs =
    answer.expires_in === undefined ? assumedMs : Math.min(answer.expires_in * 1_000, LIFETIME_MS_MAX);
  return {
    accessToken: answer.access_token,
    refreshToken,
    expiresAtMs: lifetimeMs === null ? null : nowMs + lifetimeMs,
  };
}

/** Describes a failure without the request or the answer, which the library's errors contain. */
async function asOidcError<T>(who: string, ask: () => T | Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof OutboundError) throw error;
    if (error instanceof oauth.AuthorizationResponseError) {
      const message = `${PLACE}: the target's own login answered ${nameOf(error.error)}`;
      // Every other code is a fault of the target or of the strategy, for which the end user is not to blame.
      throw error.error === "access_denied" ? new ConsentRefused(message) : new LoginFailure(message);
    }
    if (error instanceof oauth.ResponseBodyError) {
      const message = `${PLACE}: ${who} answered ${error.status}, ${nameOf(error.error)}`;
      throw error.error === "invalid_grant" ? new GrantRefused(message) : new LoginFailure(message);
    }
    throw new LoginFailure(`${PLACE}: ${who} ${explain(error)}`);
  }
}

/** An error code of RFC 6749, if it looks like one. */
const nameOf = (error: string): string => (/^[A-Za-z0-9_.-]{1,60}$/.test(error) ? error : "an error");

function explain(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  switch (code) {
    case oauth.WWW_AUTHENTICATE_CHALLENGE:
      return "rejects the client: check its id, its secret, and how they are sent (`token_auth`)";
    case oauth.RESPONSE_IS_NOT_JSON:
    case oauth.PARSE_ERROR:
      return "returned an answer that is not JSON";
    case oauth.RESPONSE_IS_NOT_CONFORM:
      return cause instanceof Response ? `answered with status ${cause.status}` : "answered unexpectedly";
    case oauth.UNSUPPORTED_OPERATION:
      return "returned a token of a type other than Bearer, or an answer of another flow";
    case oauth.JWT_CLAIM_COMPARISON:
    case oauth.JWT_TIMESTAMP_CHECK:
      return "returned an ID token that has another issuer, is for another client, or is not valid now";
    case oauth.INVALID_RESPONSE:
      return "returned an answer with a missing, duplicate or invalid parameter (such as `iss`, `code`, `access_token`)";
    default:
      return `returned an invalid answer (${typeof code === "string" ? code : "no code"})`;
  }
}
