import { findLiveToken, touchOperatorToken, type LiveToken } from "#db/operators/operator-tokens.ts";
import { Problem } from "#domain/problem.ts";
import { isWellFormedOperatorToken, OPERATOR_TOKEN_PREFIX } from "#lib/api-key.ts";
import type { Needs } from "#actions/services.ts";

/** A program that uses the operator API with an operator token. */
export interface TokenCaller extends LiveToken {
  readonly kind: "token";
}

/**
 * The operator token in the `Authorization` header values of a request; null: there is none. A proxy in front of the service may add
 * credentials of its own to requests of browsers, so other schemes and other bearer tokens are ignored.
 */
export function readOperatorToken(authorization: readonly string[]): string | null {
  const bearers = authorization.map((value) => /^bearer +(\S+)$/i.exec(value)?.[1] ?? "");
  return bearers.find((text) => text.startsWith(OPERATOR_TOKEN_PREFIX)) ?? null;
}

/** Never cached, so that a revocation takes effect immediately in every process. A malformed token costs no query. Throws Problem 401. */
export async function authenticateToken(
  services: Needs<"db" | "signing">,
  token: string,
): Promise<TokenCaller> {
  const live = isWellFormedOperatorToken(token)
    ? await findLiveToken(services.db, services.signing.operators.tokenHash(token))
    : undefined;
  if (!live)
    throw new Problem(
      "authentication_error",
      "The operator token is invalid, has expired, or was revoked. Sign in again: latchkey login; or create another: latchkey tokens create.",
      { headers: { "WWW-Authenticate": "Bearer" } },
    );
  await touchOperatorToken(services.db, live.tokenId);
  return { kind: "token", ...live };
}
