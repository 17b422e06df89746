import {
  findOAuthAttempt,
  recordOutcome,
  saveTokens,
  useOAuthAttempt,
  type FoundAttempt,
} from "#db/oauth.ts";
import { readClock } from "#db/clock.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { newId } from "#lib/new-id.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { openOAuthServer } from "#strategies/oauth-server.ts";
import type { TokenSet } from "#strategies/oauth-access.ts";
import { ConsentRefused, exchangeCode, revokeTokens } from "#strategies/oauth-tokens.ts";
import { decryptWithKey } from "#vault/one-key.ts";
import { hashState, redirectUri } from "./begin-oauth.ts";
import { readHostedById, vaultCredential, type HostedSession } from "./hosted-session.ts";
import { withOAuthAccess } from "./oauth-access.ts";
import type { Services } from "./services.ts";

/** What came back to a strategy's redirect URI. */
export interface OAuthCallback {
  readonly accountSlug: string;
  readonly strategyId: string;
  readonly parameters: URLSearchParams;
  /** The cookie of this `state`, if the browser sent one. */
  cookieOf(state: string): string | undefined;
}

export type FinishOutcome =
  /** Nobody in this browser has left with this `state`, or not in time: nothing is said about whose it may be. */
  | { readonly kind: "unknown" }
  /** The session is still pending: the end user may try again. */
  | { readonly kind: "retry"; readonly hosted: HostedSession; readonly reason: "refused" | "failed" }
  | { readonly kind: "expired" }
  | { readonly kind: "completed"; readonly hosted: HostedSession };

const STATE = /^[\w-]{43}$/;

/**
 * The end user is back from the target's own login: the code is exchanged, outside of any transaction, and the tokens are
 * vaulted by the one write that completes the session. Spec, Credential session, `pending` → `completed`.
 */
export async function finishOAuth(services: Services, callback: OAuthCallback): Promise<FinishOutcome> {
  // Design, page 6, I-18: empty, missing or doubled is no `state`.
  const [state = "", ...more] = callback.parameters.getAll("state");
  if (more.length > 0 || !STATE.test(state)) return { kind: "unknown" };
  const attempt = await findOAuthAttempt(services.db, hashState(state));
  const cookie = callback.cookieOf(state) ?? "";
  if (!attempt || !services.signing.verifyOAuthCookie(state, cookie)) return { kind: "unknown" };
  const hosted = await readHostedById(services, attempt.accountId, attempt.sessionId);
  // Design, page 6, 5.6: an answer that came to another strategy's redirect URI is another server's.
  if (hosted.accountSlug !== callback.accountSlug || attempt.strategyId !== callback.strategyId)
    return { kind: "unknown" };
  if (hosted.session.status === "completed") return { kind: "completed", hosted };
  if (hosted.session.status === "expired") return { kind: "expired" };
  if (attempt.isUsed || !(await useOAuthAttempt(services.db, attempt.stateHash))) return { kind: "unknown" };
  try {
    return await complete(services, hosted, attempt, state, callback.parameters);
  } catch (error) {
    const isRefused = error instanceof ConsentRefused;
    if (!isRefused && !(error instanceof LoginFailure || error instanceof OutboundError)) throw error;
    const fields = { sessionId: attempt.sessionId, strategyId: attempt.strategyId, detail: error.message };
    services.log.warn(fields, "a sign-in at a target failed");
    const reason = isRefused ? "refused" : "failed";
    // The frame that the window was opened from asks for it.
    await recordOutcome(services.db, attempt.stateHash, reason);
    return { kind: "retry", hosted, reason };
  }
}

async function complete(
  services: Services,
  hosted: HostedSession,
  attempt: FoundAttempt,
  state: string,
  parameters: URLSearchParams,
): Promise<FinishOutcome> {
  const { signing } = services;
  const plain = await decryptWithKey(signing.oauthFormKey(state).reveal(), attempt.form);
  const values = new Map(JSON.parse(Buffer.from(plain).toString("utf8")) as [string, string][]);
  plain.fill(0);
  const place = { accountId: hosted.session.accountId, strategy: hosted.strategy };
  return await withOAuthAccess(services, place, values, async (access) => {
    const target = await openOAuthServer(access, hosted.strategy);
    const tokens = await exchangeCode(target, parameters, {
      redirectUri: redirectUri(services, hosted.accountSlug, hosted.strategy.id),
      state,
      verifier: signing.oauthVerifier(state),
      nowMs: await readClock(services.db),
    });
    await failpoint("oauth.after_exchange");
    if (await vaultTokens(services, hosted, values, tokens)) return { kind: "completed", hosted };
    // Another tab was faster, or the time is over: what nobody will use is taken back.
    await revokeTokens(target, tokens);
    const now = await readHostedById(services, attempt.accountId, attempt.sessionId);
    return now.session.status === "completed" ? { kind: "completed", hosted: now } : { kind: "expired" };
  });
}

/** The credential and its tokens, in the transaction that completes the session. False: it was not pending any more. */
async function vaultTokens(
  services: Services,
  hosted: HostedSession,
  values: ReadonlyMap<string, string>,
  tokens: TokenSet,
): Promise<boolean> {
  const { accountId, strategyId } = hosted.session;
  const credentialId = newId(ID_PREFIX.credential);
  const version = 1;
  const plain = Buffer.from(JSON.stringify(tokens), "utf8");
  const sealed = await services.vault.seal(plain, {
    purpose: "oauth_token",
    accountId,
    rowId: credentialId,
    strategyId,
    version: String(version),
  });
  plain.fill(0);
  const { expiresAtMs } = tokens;
  return await vaultCredential(services, hosted, credentialId, values, async (tx) => {
    const row = { accountId, credentialId, version, ...sealed, expiresAtMs };
    must((await saveTokens(tx, row)) || null, "the row of a new credential's tokens");
  });
}
