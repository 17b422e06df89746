import { recordAudit } from "#db/audit-entries.ts";
import { readClock } from "#db/connection/clock.ts";
import {
  findOperatorByName,
  findOperatorBySubject,
  lockOperator,
  saveOidcLink,
} from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import { linkableName } from "#domain/operator.ts";
import type { OidcRefusal } from "#domain/problem.ts";
import type { Needs, Services } from "#actions/services.ts";
import type { OidcIdentity } from "./oidc-provider.ts";
import {
  handleCallback,
  startAuthorization,
  heldState,
  reasonOf,
  refuseFlow,
  requireOidc,
  type OidcCallback,
  type AuthorizationRedirect,
} from "./oidc-flow.ts";
import { openSession, recordRefused, type NewcomerBrowser } from "./open-session.ts";
import { newSessionToken } from "./sign-in.ts";
import { throttleArrival, throttleStranger, type Newcomer } from "./throttle-sign-in.ts";

/** Sends a browser to the provider. Throws Problem 409, 429 or 502. */
export async function beginOidcSignIn(
  services: Services,
  browser: Pick<Newcomer, "address" | "knownBrowsers">,
  returnTo: string,
): Promise<AuthorizationRedirect> {
  throttleStranger(services, browser);
  return await startAuthorization(services, { kind: "sign_in" }, returnTo);
}

/**
 * docs/decisions/0022. Finishes a single sign-on: the provider's identity must belong to an operator. Returns the token of a new
 * session. Throws Problem 401, 409 or 502.
 */
export async function finishOidcSignIn(
  services: Services,
  callback: OidcCallback,
  browser: NewcomerBrowser,
): Promise<{ readonly token: string; readonly state: string; readonly returnTo: string }> {
  throttleArrival(services, heldState(services, callback), browser.address);
  const flow = await handleCallback(services, callback, { kind: "sign_in" });
  if (flow.kind === "refused") throw await fail(services, browser, flow.reason, null);
  const { identity, state, returnTo } = flow;
  const found = await findWho(services, identity);
  if (typeof found === "string") throw await fail(services, browser, found, null);
  const token = newSessionToken();
  const refused = await services.db.transaction(
    async (tx) => await admit(services, tx, { operatorId: found.id, identity, browser, token }),
  );
  if (refused !== null) throw await fail(services, browser, refused, found.id);
  return { token, state, returnTo };
}

/** Finds the operator by the provider's subject; at the first sign-in, by the verified email address. */
async function findWho(
  services: Needs<"db" | "operatorSignIn">,
  identity: OidcIdentity,
): Promise<{ readonly id: string } | OidcRefusal> {
  const linked = await findOperatorBySubject(services.db, identity.issuer, identity.subject);
  if (linked) return linked;
  try {
    const email = await identity.verifiedEmail();
    if (email === null) return "oidc_unverified";
    const name = linkableName(email);
    return (name !== null && (await findOperatorByName(services.db, name))) || "oidc_unknown";
  } catch (error) {
    return reasonOf(services, error);
  }
}

/** With the operator's row locked against concurrent disabling, linking or unlinking. null: allowed. */
async function admit(
  services: Needs<"operatorSignIn" | "signing">,
  tx: Database,
  {
    operatorId,
    identity,
    browser,
    token,
  }: {
    readonly operatorId: string;
    readonly identity: OidcIdentity;
    readonly browser: NewcomerBrowser;
    readonly token: string;
  },
): Promise<OidcRefusal | null> {
  const operator = await lockOperator(tx, operatorId);
  if (!operator) return "oidc_unknown";
  if (operator.disabledAt !== null) return "oidc_disabled";
  if (operator.oidcSubject === null) {
    const audited = await saveOidcLink(tx, operator, identity);
    await recordAudit(tx, services.signing.audit, {
      accountId: null,
      actor: { kind: "operator", id: operatorId },
      action: "operator.oidc_link",
      subjectId: operatorId,
      detail: { issuer: identity.issuer, subject: identity.subject, ...audited },
    });
  } else if (operator.oidcSubject !== identity.subject || operator.oidcIssuer !== identity.issuer)
    return "oidc_taken";
  const isSteppedUp = !requireOidc(services).requireTotp && (await isRecentlyAuthenticated(tx, identity));
  await openSession(services, tx, {
    operatorId,
    browser,
    token,
    signedInBy: "oidc",
    isSteppedUp,
    secondFactor: isSteppedUp ? "provider" : null,
  });
  return null;
}

/** Whether the provider authenticated the person recently enough to replace a second factor. */
async function isRecentlyAuthenticated(tx: Database, { askedAtMs }: OidcIdentity): Promise<boolean> {
  return askedAtMs !== null && (await readClock(tx)) - askedAtMs < limits.operatorStepUpMs;
}

/** Records a refusal: with its own audit entry for a known operator, and never with the provider's data. */
async function fail(
  services: Needs<"db" | "refusedSignIns" | "signing">,
  { address }: NewcomerBrowser,
  reason: OidcRefusal,
  operatorId: string | null,
) {
  await recordRefused(services, operatorId, reason, address);
  return refuseFlow(reason, "sign_in");
}
