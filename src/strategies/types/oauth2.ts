import { matchesSchema } from "#domain/matches-schema.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { defineLogin, LoginFailure, type LoginContext } from "#strategies/define-login.ts";
import type { TokenSet } from "#strategies/oauth/oauth-access.ts";
import { checkOAuthConfig } from "#strategies/oauth/oauth-check.ts";
import { grantOf, oauthSchema } from "#strategies/oauth/oauth-schema.ts";
import { openOAuthServer, readOAuthConfig } from "#strategies/oauth/oauth-server.ts";
import { GrantRefused, refreshTokens, requestTokens } from "#strategies/oauth/oauth-tokens.ts";
import { writtenOrigin } from "#strategies/oauth/oauth-url.ts";

const PLACE = "login (oauth2)";
const RECONNECT = "reconnect needed";

/** docs/logins/oauth2.md. */
export const login = defineLogin({
  type: "oauth2",
  description: "OAuth 2: the target's own login page, or tokens for a client or a user name.",
  schema: oauthSchema,
  keepsItsOwnSession: true,
  check: (config, strategy) => (matchesSchema(oauthSchema, config) ? checkOAuthConfig(config, strategy) : []),
  // An `authorization_url` is opened by the browser and receives no part of a credential.
  sendsTo: ({ issuer, token_url: token }) =>
    [issuer, token].flatMap((url) => (typeof url === "string" ? (writtenOrigin(url) ?? []) : [])),
  explainUntried: (config) =>
    matchesSchema(oauthSchema, config) && grantOf(config) === "authorization_code"
      ? "the end user signs in at the target itself, which tries the login; remove `verify`"
      : null,
  async login(context) {
    const { accessToken } = await currentTokens(context);
    return { headers: { authorization: bearer(accessToken) }, cookies: null };
  },
});

/** Logins with one credential run one at a time, so that the next one finds the tokens that this one stored. */
async function currentTokens(context: LoginContext): Promise<TokenSet> {
  const oauth = must(context.oauth, "what an OAuth login works with");
  const [kept, nowMs] = [await oauth.tokens(), await oauth.nowMs()];
  // Another run may already have renewed the token that the target rejected here.
  const isRefused = context.refused?.headers["authorization"] === bearer(kept?.accessToken ?? "");
  if (kept && !isRefused && isGood(kept, nowMs)) return kept;
  const fresh = await freshTokens(context, kept, nowMs);
  // docs/decisions/0020: stored before it is used, because the target may have invalidated the old refresh token.
  await oauth.keep(fresh);
  return fresh;
}

const bearer = (accessToken: string): string => `Bearer ${accessToken}`;

const isGood = ({ expiresAtMs }: TokenSet, nowMs: number): boolean =>
  expiresAtMs === null || nowMs < expiresAtMs - limits.oauthExpiryMarginMs;

async function freshTokens(context: LoginContext, kept: TokenSet | null, nowMs: number): Promise<TokenSet> {
  const grant = grantOf(readOAuthConfig(context.strategy));
  const target = await openOAuthServer(
    { ...must(context.oauth, "what an OAuth login works with"), expressions: context.expressions },
    context.strategy,
  );
  const refreshToken = kept?.refreshToken ?? null;
  if (refreshToken !== null) {
    try {
      return await refreshTokens(target, refreshToken, nowMs);
    } catch (error) {
      if (!(error instanceof GrantRefused)) throw error;
      if (grant === "authorization_code")
        throw new LoginFailure(
          `${PLACE}: ${RECONNECT}: the target rejects the refresh token (invalid_grant)`,
        );
    }
  }
  if (grant === "authorization_code")
    throw new LoginFailure(
      `${PLACE}: ${RECONNECT}: ${kept === null ? "there are no tokens" : "the access token has expired, and the target issued no refresh token"}`,
    );
  if (grant === "client_credentials") return await requestTokens(target, null, nowMs);
  try {
    return await requestTokens(target, readUser(context), nowMs);
  } catch (error) {
    // The end user's password was rejected: another attempt would count against their account there.
    if (error instanceof GrantRefused) throw new LoginFailure(error.message, { rejected: true });
    throw error;
  }
}

function readUser(context: LoginContext): { readonly username: string; readonly password: string } {
  const config = readOAuthConfig(context.strategy);
  const read = (key: "username" | "password"): string =>
    context.field(must(config[key], `a checked ${key}`)) ?? "";
  return { username: read("username"), password: read("password") };
}
