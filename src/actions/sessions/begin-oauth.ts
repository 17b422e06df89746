import { createHash, randomBytes } from "node:crypto";
import { noteSignInFailure } from "#db/credentials/credential-sessions.ts";
import { insertOAuthAttempt } from "#db/credentials/oauth.ts";
import { isAnyWorkerAlive } from "#db/runs/workers.ts";
import type { FormIssue } from "#domain/form-issue.ts";
import { writeCredential } from "#domain/destination.ts";
import { checkFormValues } from "#domain/form-values.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import { limits } from "#domain/limits.ts";
import type { Strategy } from "#domain/strategy.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { grantOf } from "#strategies/oauth/oauth-schema.ts";
import type { OAuthAccess } from "#strategies/oauth/oauth-access.ts";
import {
  authenticateClient,
  openOAuthSite,
  readOAuthConfig,
  SealedSecret,
  type OAuthSite,
} from "#strategies/oauth/oauth-server.ts";
import { writeAuthorizationUrl } from "#strategies/oauth/oauth-tokens.ts";
import { writtenOrigin } from "#strategies/oauth/oauth-url.ts";
import { credentialOrigins } from "#strategies/registry.ts";
import { encryptWithKey } from "#vault/one-key.ts";
import type { HostedSession } from "./hosted-session.ts";
import { withOAuthAccess } from "./oauth-access.ts";
import type { Needs, Services } from "#actions/services.ts";

/** Whether an end user logs in at the target itself, and so leaves our page. */
export const leavesForTarget = ({ login }: Strategy): boolean =>
  login.type === "oauth2" && grantOf({ grant: login["grant"] as never }) === "authorization_code";

/** The host of the target's own login, in readable form, if the document names it. */
export function signInHost(strategy: Strategy): string {
  const { authorization_url: url, issuer } = readOAuthConfig(strategy);
  const origin = writtenOrigin(url ?? issuer ?? "");
  return origin === null ? "" : new URL(origin).host;
}

/** docs/decisions/0020: one redirect URI for each strategy, so that an answer of one server is never accepted for another. */
export const redirectUri = (services: Needs<"publicUrl">, accountSlug: string, strategyId: string): string =>
  `${services.publicUrl()}/connect/oauth/${encodeURIComponent(accountSlug)}/${encodeURIComponent(strategyId)}`;

export const hashState = (state: string): Buffer => createHash("sha256").update(state).digest();

const STATE_BYTES = 32;

export type BeginOutcome =
  /** The browser is redirected to `url` and keeps `cookie` until it returns. */
  | { readonly kind: "leave"; readonly url: string; readonly state: string; readonly cookie: string }
  /** By field key. */
  | { readonly kind: "invalid"; readonly errors: ReadonlyMap<string, FormIssue> }
  /** Completed or expired since the page was shown. */
  | { readonly kind: "closed" }
  | { readonly kind: "failed" };

/**
 * Sends an end user to the target's own login. The values entered before are stored in the database, encrypted with a key derived
 * from `state`, which only the end user's browser has. Nothing else is stored: the PKCE verifier is derived from `state`, too.
 */
export async function beginOAuth(
  services: Services,
  hosted: HostedSession,
  submitted: ReadonlyMap<string, string>,
): Promise<BeginOutcome> {
  const { session, strategy, accountSlug } = hosted;
  const { values, errors } = checkFormValues(strategy.fields, submitted);
  if (errors.size > 0) return { kind: "invalid", errors };
  const { signing } = services;
  const state = randomBytes(STATE_BYTES).toString("base64url");
  let url: string;
  try {
    url = await withOAuthAccess(
      services,
      { accountId: session.accountId, strategy, origins: credentialOrigins(strategy) },
      values,
      async (access) => {
        const site = await openOAuthSite(access, strategy);
        await requireSecret(services, access, strategy, site);
        return await writeAuthorizationUrl(site, {
          redirectUri: redirectUri(services, accountSlug, strategy.id),
          state,
          verifier: signing.oauthVerifier(state),
        });
      },
    );
  } catch (error) {
    if (!(error instanceof LoginFailure || error instanceof OutboundError)) throw error;
    const { id: sessionId } = session;
    services.log.warn(
      { sessionId, strategyId: strategy.id, detail: error.message },
      "a sign-in could not be started",
    );
    await noteSignInFailure(services.db, sessionId, error.message);
    return { kind: "failed" };
  }
  const plain = Buffer.from(writeCredential(values, credentialOrigins(strategy)), "utf8");
  const form = await encryptWithKey(signing.oauthFormKey(state).reveal(), plain);
  plain.fill(0);
  const attempt = {
    stateHash: hashState(state),
    accountId: session.accountId,
    sessionId: session.id,
    strategyId: strategy.id,
    form,
  };
  const isOpen = await insertOAuthAttempt(services.db, attempt, limits.oauthStateMs);
  if (!isOpen) return { kind: "closed" };
  return { kind: "leave", url, state, cookie: signing.oauthCookie(state) };
}

/** Refuses to start a sign-in that neither this nor another process could finish. Throws LoginFailure. */
async function requireSecret(
  { db }: Needs<"db">,
  access: OAuthAccess,
  strategy: Strategy,
  site: OAuthSite,
): Promise<void> {
  try {
    await authenticateClient(access, strategy, site);
  } catch (error) {
    if (!(error instanceof SealedSecret) || !(await isAnyWorkerAlive(db, limits.heartbeatStaleMs)))
      throw error;
  }
}
