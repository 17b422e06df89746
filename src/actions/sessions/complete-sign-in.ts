import { readClock } from "#db/connection/clock.ts";
import { noteSignInFailure } from "#db/credentials/credential-sessions.ts";
import { recordOutcome, saveTokens, type OAuthAttempt } from "#db/credentials/oauth.ts";
import { readCredential, writeWithOrigins } from "#domain/destination.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { newId } from "#lib/new-id.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import type { TokenSet } from "#strategies/oauth/oauth-access.ts";
import { openOAuthServer } from "#strategies/oauth/oauth-server.ts";
import { ConsentRefused, exchangeCode, revokeTokens } from "#strategies/oauth/oauth-tokens.ts";
import { credentialOrigins } from "#strategies/registry.ts";
import { decryptWithKey } from "#vault/one-key.ts";
import { readHostedById, vaultCredential, type HostedSession, type NewContent } from "./hosted-session.ts";
import { withOAuthAccess } from "./oauth-access.ts";
import type { Needs, Services } from "#actions/services.ts";

export type FinishOutcome =
  /** The session is still pending: the end user may try again. */
  | { readonly kind: "retry"; readonly hosted: HostedSession; readonly reason: "refused" | "failed" }
  | { readonly kind: "expired"; readonly hosted: HostedSession }
  | { readonly kind: "completed"; readonly hosted: HostedSession };

/** The parameters with which a target's own login redirected a browser back. Secret. */
export interface OAuthAnswer {
  readonly state: string;
  readonly parameters: URLSearchParams;
  /** The redirect URI that the target knows: this process may have another address than the one to which the browser returned. */
  readonly redirectUri: string;
}

/** Throws errors that are not caused by the end user, the target or the strategy. */
export async function noteFailure(
  services: Needs<"db" | "log">,
  hosted: HostedSession,
  attempt: OAuthAttempt,
  error: unknown,
): Promise<FinishOutcome> {
  const isRefused = error instanceof ConsentRefused;
  if (!isRefused && !(error instanceof LoginFailure || error instanceof OutboundError)) throw error;
  const fields = { sessionId: attempt.sessionId, strategyId: attempt.strategyId, detail: error.message };
  services.log.warn(fields, "a sign-in at a target failed");
  const reason = isRefused ? "refused" : "failed";
  // The frame that opened the window asks for it.
  await recordOutcome(services.db, attempt.stateHash, reason);
  await noteSignInFailure(services.db, attempt.sessionId, error.message);
  return { kind: "retry", hosted, reason };
}

/** Exchanges the code and completes the session. Throws ConsentRefused, LoginFailure (SealedSecret before anything is sent), OutboundError. */
export async function completeSignIn(
  services: Services,
  hosted: HostedSession,
  attempt: OAuthAttempt,
  answer: OAuthAnswer,
): Promise<FinishOutcome> {
  const { signing } = services;
  const { state, parameters, redirectUri: address } = answer;
  const plain = await decryptWithKey(signing.oauthFormKey(state).reveal(), attempt.form);
  const { fields: values, origins: left } = readCredential(Buffer.from(plain).toString("utf8"));
  plain.fill(0);
  // The origins that the end user agreed to, whatever the strategy names by now. Null for a sign-in that began before an upgrade.
  const origins = left ?? credentialOrigins(hosted.strategy);
  const place = { accountId: hosted.session.accountId, strategy: hosted.strategy, origins };
  return await withOAuthAccess(services, place, values, async (access) => {
    const target = await openOAuthServer(access, hosted.strategy);
    const tokens = await exchangeCode(target, parameters, {
      redirectUri: address,
      state,
      verifier: signing.oauthVerifier(state),
      nowMs: await readClock(services.db),
    });
    await failpoint("oauth.after_exchange");
    if (await vaultTokens(services, hosted, { values, origins }, tokens))
      return { kind: "completed", hosted };
    // Another tab was faster, or the session has expired: revoke the unused tokens.
    await revokeTokens(target, tokens);
    return await closedOutcome(services, hosted);
  });
}

/** The outcome for a session that is no longer pending. */
export async function closedOutcome(
  services: Needs<"db">,
  { session }: HostedSession,
): Promise<FinishOutcome> {
  const now = await readHostedById(services, session.accountId, session.id);
  return now.session.status === "completed"
    ? { kind: "completed", hosted: now }
    : { kind: "expired", hosted: now };
}

/** The credential and its tokens, in the transaction that completes the session. False: it was not pending any more. */
async function vaultTokens(
  services: Needs<"db" | "signing" | "vault">,
  hosted: HostedSession,
  content: NewContent,
  tokens: TokenSet,
): Promise<boolean> {
  const { accountId, strategyId } = hosted.session;
  const credentialId = newId(ID_PREFIX.credential);
  const version = 1;
  const plain = Buffer.from(writeWithOrigins(tokens, content.origins), "utf8");
  const sealed = await services.vault.seal(plain, {
    purpose: "oauth_token",
    accountId,
    rowId: credentialId,
    strategyId,
    version: String(version),
  });
  plain.fill(0);
  const { expiresAtMs } = tokens;
  return await vaultCredential(services, hosted, credentialId, content, async (tx) => {
    const row = { accountId, credentialId, version, ...sealed, expiresAtMs };
    must((await saveTokens(tx, row)) || null, "the row of a new credential's tokens");
  });
}
