import { findOAuthAttempt, useOAuthAttempt } from "#db/credentials/oauth.ts";
import { SealedSecret } from "#strategies/oauth/oauth-server.ts";
import { hashState, redirectUri } from "./begin-oauth.ts";
import { completeSignIn, noteFailure, type FinishOutcome } from "./complete-sign-in.ts";
import { handOverSignIn } from "./hand-over-sign-in.ts";
import { readHostedById, type HostedSession } from "./hosted-session.ts";
import type { Services } from "#actions/services.ts";

/** A request to a strategy's redirect URI. */
export interface OAuthCallback {
  readonly accountSlug: string;
  readonly strategyId: string;
  readonly parameters: URLSearchParams;
  /** The cookie of this `state`, if the browser sent one. */
  cookieOf(state: string): string | undefined;
}

const STATE = /^[\w-]{43}$/;

/**
 * Completes a sign-in at the target: the code is exchanged, outside of any transaction, and the tokens are sealed by the one
 * write that completes the session. Spec, Credential session, `pending` → `completed`. `unknown`: this browser did not start a
 * sign-in with this `state`, or it has expired; the page does not say which session it belongs to. `spent`: this browser did, and has
 * come back with it before.
 */
export async function finishOAuth(
  services: Services,
  callback: OAuthCallback,
): Promise<
  FinishOutcome | { readonly kind: "unknown" } | { readonly kind: "spent"; readonly hosted: HostedSession }
> {
  // docs/decisions/0020: an empty, missing or repeated `state` is invalid.
  const [state = "", ...more] = callback.parameters.getAll("state");
  if (more.length > 0 || !STATE.test(state)) return { kind: "unknown" };
  const attempt = await findOAuthAttempt(services.db, hashState(state));
  const cookie = callback.cookieOf(state) ?? "";
  if (!attempt || !services.signing.verifyOAuthCookie(state, cookie)) return { kind: "unknown" };
  const hosted = await readHostedById(services, attempt.accountId, attempt.sessionId);
  // docs/decisions/0020: an answer that came to another strategy's redirect URI is another server's.
  if (hosted.accountSlug !== callback.accountSlug || attempt.strategyId !== callback.strategyId)
    return { kind: "unknown" };
  if (hosted.session.status === "completed") return { kind: "completed", hosted };
  if (hosted.session.status === "expired") return { kind: "expired", hosted };
  if (attempt.isUsed || !(await useOAuthAttempt(services.db, attempt.stateHash)))
    return { kind: "spent", hosted };
  const answer = {
    state,
    parameters: callback.parameters,
    redirectUri: redirectUri(services, hosted.accountSlug, hosted.strategy.id),
  };
  try {
    return await completeSignIn(services, hosted, attempt, answer);
  } catch (error) {
    if (!(error instanceof SealedSecret)) return await noteFailure(services, hosted, attempt, error);
    return await handOverSignIn(services, hosted, attempt, answer, error);
  }
}
