import { createHash, randomBytes } from "node:crypto";

/** What an end user has agreed to. All tokens that come from it are one family. */
export interface Grant {
  readonly clientId: string;
  readonly username: string;
  readonly scope: string;
  revoked: boolean;
}

interface Code {
  readonly grant: Grant;
  readonly redirectUri: string;
  readonly challenge: string;
  readonly untilMs: number;
  used: boolean;
}

interface AccessToken {
  readonly grant: Grant;
  readonly untilMs: number;
  uses: number;
}

export interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: "Bearer";
  readonly expires_in: number;
  readonly refresh_token: string;
  readonly scope: string;
}

export interface OAuthTokens {
  /** A code for the consent that was just given: once, for a minute. */
  giveCode(grant: Omit<Grant, "revoked">, redirectUri: string, challenge: string): string;
  /** Null: `invalid_grant`. A code that comes twice takes back what its first use gave (RFC 6749, 4.1.2). */
  exchangeCode(clientId: string, code: string, redirectUri: string, verifier: string): TokenAnswer | null;
  /** A refresh token is good once. One that comes again was copied: its whole family is taken back (RFC 9700, 4.14.2). */
  refresh(clientId: string, refreshToken: string): TokenAnswer | null;
  /** Who may do what with this access token. Counts as a use. */
  use(accessToken: string): Grant | null;
  /** Access tokens given from now on, and those there are, are forgotten after so many uses; null: by their time alone. */
  setUses(uses: number | null): void;
  readonly counts: Readonly<Record<"codes" | "exchanged" | "refreshed" | "forgotten" | "reused", number>>;
}

export const ACCESS_TOKEN_SECONDS = 300;
const CODE_MS = 60_000;

/** In memory: a restart forgets all of it. */
export function createTokens(nowMs: () => number = () => performance.now()): OAuthTokens {
  const codes = new Map<string, Code>();
  const access = new Map<string, AccessToken>();
  const refresh = new Map<string, { readonly grant: Grant; used: boolean }>();
  const counts = { codes: 0, exchanged: 0, refreshed: 0, forgotten: 0, reused: 0 };
  let usesMax: number | null = null;
  const give = (grant: Grant): TokenAnswer => {
    const [accessToken, refreshToken] = [newToken(), newToken()];
    access.set(accessToken, { grant, untilMs: nowMs() + ACCESS_TOKEN_SECONDS * 1_000, uses: 0 });
    refresh.set(refreshToken, { grant, used: false });
    return {
      access_token: accessToken,
      token_type: "Bearer",
      expires_in: ACCESS_TOKEN_SECONDS,
      refresh_token: refreshToken,
      scope: grant.scope,
    };
  };
  const takeBack = (grant: Grant): null => {
    grant.revoked = true;
    counts.reused += 1;
    return null;
  };
  return {
    giveCode(grant, redirectUri, challenge) {
      const code = newToken();
      const untilMs = nowMs() + CODE_MS;
      codes.set(code, { grant: { ...grant, revoked: false }, redirectUri, challenge, untilMs, used: false });
      counts.codes += 1;
      return code;
    },
    exchangeCode(clientId, code, redirectUri, verifier) {
      const found = codes.get(code);
      if (!found || found.grant.clientId !== clientId) return null;
      if (found.used) return takeBack(found.grant);
      found.used = true;
      const isRight = found.redirectUri === redirectUri && found.challenge === challengeOf(verifier);
      if (!isRight || nowMs() > found.untilMs) return null;
      counts.exchanged += 1;
      return give(found.grant);
    },
    refresh(clientId, refreshToken) {
      const found = refresh.get(refreshToken);
      if (!found || found.grant.clientId !== clientId || found.grant.revoked) return null;
      if (found.used) return takeBack(found.grant);
      found.used = true;
      counts.refreshed += 1;
      return give(found.grant);
    },
    use(accessToken) {
      const found = access.get(accessToken);
      if (!found || found.grant.revoked || nowMs() > found.untilMs) return null;
      if (usesMax !== null && found.uses >= usesMax) {
        access.delete(accessToken);
        counts.forgotten += 1;
        return null;
      }
      found.uses += 1;
      return found.grant;
    },
    setUses(uses) {
      usesMax = uses;
    },
    counts,
  };
}

/** RFC 7636, S256. */
const challengeOf = (verifier: string): string => createHash("sha256").update(verifier).digest("base64url");

const newToken = (): string => randomBytes(32).toString("base64url");
