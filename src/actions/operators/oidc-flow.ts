import { createHash, randomBytes } from "node:crypto";
import { insertOidcAttempt, takeOidcAttempt } from "#db/operators/operator-oidc.ts";
import { limits } from "#domain/limits.ts";
import { Problem, type OidcRefusal } from "#domain/problem.ts";
import type { Needs, OperatorSignIn } from "#actions/services.ts";
import { OidcError, type OidcIdentity, type OidcFlow } from "./oidc-provider.ts";

/** The purpose of a flow. A `state` is only valid for its purpose, and the callback page can tell them apart. */
export type FlowPurpose =
  | { readonly kind: "sign_in" }
  | { readonly kind: "step_up"; readonly sessionId: string };

const LETTER = { sign_in: "s", step_up: "u" } as const;
const STATE_BYTES = 32;
const STATE = /^[su][\w-]{43}$/;

export const hashState = (state: string): Buffer => createHash("sha256").update(state).digest();

/** The URL to redirect the browser to, and the cookie that it keeps until the callback. */
export interface AuthorizationRedirect {
  readonly url: string;
  readonly state: string;
  readonly cookie: string;
}

export interface OidcCallback {
  /** The query of the callback. */
  readonly query: string;
  /** The cookie of this `state`, if the browser sent one. */
  readonly cookieOf: (state: string) => string;
}

/** Throws Problem 409. */
export function requireOidc(services: Needs<"operatorSignIn">): NonNullable<OperatorSignIn["oidc"]> {
  const { oidc } = services.operatorSignIn;
  if (oidc) return oidc;
  throw new Problem("conflict", "Single sign-on is not configured: LATCHKEY_OIDC_ISSUER is not set.");
}

const sessionIdOf = (purpose: FlowPurpose): string | null =>
  purpose.kind === "step_up" ? purpose.sessionId : null;

/** Only the hash of `state` is stored: the rest is derived from `state`. */
function flowOf(services: Needs<"publicUrl" | "signing">, state: string, purpose: FlowPurpose): OidcFlow {
  const keys = services.signing.operators;
  return {
    // RFC 9700, 2.1: exactly one, and the same both times.
    redirectUri: `${services.publicUrl()}/dashboard/oidc`,
    state,
    verifier: keys.oidcVerifier(state),
    nonce: keys.oidcNonce(state),
    fresh: purpose.kind === "step_up",
  };
}

/** Throws Problem 409 or 502. */
export async function startAuthorization(
  services: Needs<"db" | "operatorSignIn" | "publicUrl" | "signing">,
  purpose: FlowPurpose,
  returnTo: string,
): Promise<AuthorizationRedirect> {
  const { provider } = requireOidc(services);
  const state = LETTER[purpose.kind] + randomBytes(STATE_BYTES).toString("base64url");
  const url = await provider.authorizationUrl(flowOf(services, state, purpose)).catch((error: unknown) => {
    throw error instanceof OidcError ? unavailable(services) : error;
  });
  await insertOidcAttempt(services.db, {
    stateHash: hashState(state),
    sessionId: sessionIdOf(purpose),
    returnTo,
    lifetimeMs: limits.oauthStateMs,
  });
  return { url, state, cookie: services.signing.operators.oidcCookie(state) };
}

export type TripOutcome =
  | { readonly kind: "refused"; readonly reason: OidcRefusal }
  | {
      readonly kind: "arrived";
      readonly identity: OidcIdentity;
      readonly state: string;
      readonly returnTo: string;
    };

/** The single `state` of a callback, if this browser started the flow; otherwise null. */
export function heldState(services: Needs<"signing">, { query, cookieOf }: OidcCallback): string | null {
  // docs/decisions/0020: an empty, missing or repeated `state` is invalid.
  const [state = "", ...more] = new URLSearchParams(query).getAll("state");
  if (more.length > 0 || !STATE.test(state)) return null;
  return services.signing.operators.verifyOidcCookie(state, cookieOf(state)) ? state : null;
}

/** Handles a callback: checks and consumes `state`, then asks the provider. Throws Problem 409 or 502. */
export async function handleCallback(
  services: Needs<"db" | "operatorSignIn" | "publicUrl" | "signing">,
  callback: OidcCallback,
  purpose: FlowPurpose,
): Promise<TripOutcome> {
  const { provider } = requireOidc(services);
  const state = heldState(services, callback);
  if (state === null) return { kind: "refused", reason: "oidc_state" };
  const attempt = await takeOidcAttempt(services.db, hashState(state), sessionIdOf(purpose));
  if (!attempt) return { kind: "refused", reason: "oidc_state" };
  try {
    const answer = new URLSearchParams(callback.query);
    const identity = await provider.callback(answer, flowOf(services, state, purpose));
    return { kind: "arrived", identity, state, returnTo: attempt.returnTo };
  } catch (error) {
    return { kind: "refused", reason: reasonOf(services, error) };
  }
}

/** Throws Problem 502, and errors that don't come from the provider. */
export function reasonOf(services: Needs<"operatorSignIn">, error: unknown): OidcRefusal {
  if (!(error instanceof OidcError)) throw error;
  if (error.kind === "unavailable") throw unavailable(services);
  return error.kind === "denied" ? "oidc_denied" : "oidc_failed";
}

function unavailable({ operatorSignIn: { byPassword } }: Needs<"operatorSignIn">): Problem {
  const message = `The single sign-on provider can't be reached. Try again shortly${byPassword ? ", or sign in with your password" : ""}.`;
  return new Problem("internal_error", message, {
    status: 502,
    details: [{ message, code: "oidc_unavailable" }],
  });
}

const SENTENCES: Readonly<Record<OidcRefusal, string>> = {
  oidc_state: "This sign-in belongs to another browser, has expired, or was already used. Start again.",
  oidc_denied: "The provider did not sign you in. Start again, or contact the provider's administrators.",
  oidc_failed: "The provider's answer could not be verified. The service's log says why.",
  oidc_unverified: "The provider has no verified email address for you.",
  oidc_unknown: "No operator has your email address. Ask an admin to create one.",
  oidc_taken:
    "The operator with your email address is linked to another account at the provider. An admin can unlink it: `latchkey operators unlink`.",
  oidc_disabled: "This operator is disabled.",
};

/** 401 for a sign-in; 403 for a step-up, whose session stays valid. */
export function refuseFlow(reason: OidcRefusal, purpose: FlowPurpose["kind"]): Problem {
  const message = SENTENCES[reason];
  const type = purpose === "sign_in" ? "authentication_error" : "authorization_error";
  return new Problem(type, message, { details: [{ message, code: reason }] });
}
