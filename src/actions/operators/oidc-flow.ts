import { createHash, randomBytes } from "node:crypto";
import { insertOidcAttempt, takeOidcAttempt } from "#db/operators/operator-oidc.ts";
import { limits } from "#domain/limits.ts";
import { Problem, type OidcRefusal } from "#domain/problem.ts";
import type { Needs, OperatorSignIn } from "#actions/services.ts";
import { OidcError, type OidcIdentity, type OidcFlow } from "./oidc-provider.ts";

/** Why somebody leaves for the provider: a `state` that was made for one is none for the other, and the page that it comes back to can tell. */
export type FlowPurpose =
  | { readonly kind: "sign_in" }
  | { readonly kind: "step_up"; readonly sessionId: string };

const LETTER = { sign_in: "s", step_up: "u" } as const;
const STATE_BYTES = 32;
const STATE = /^[su][\w-]{43}$/;

export const hashState = (state: string): Buffer => createHash("sha256").update(state).digest();

/** What the browser goes to, and what it keeps until it is back. */
export interface Departure {
  readonly url: string;
  readonly state: string;
  readonly cookie: string;
}

export interface Arrival {
  /** The query that the provider has sent the browser back with. */
  readonly query: string;
  /** The cookie of this `state`, if the browser sent one. */
  readonly cookieOf: (state: string) => string;
}

/** Throws Problem 409. */
export function requireOidc(services: Needs<"operatorSignIn">): NonNullable<OperatorSignIn["oidc"]> {
  const { oidc } = services.operatorSignIn;
  if (oidc) return oidc;
  throw new Problem("conflict", "There is no single sign-on here: LATCHKEY_OIDC_ISSUER is not set.");
}

const sessionIdOf = (purpose: FlowPurpose): string | null =>
  purpose.kind === "step_up" ? purpose.sessionId : null;

/** Nothing is kept but the hash of `state`: what goes with it is derived from it again. */
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
): Promise<Departure> {
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

/** The one `state` of an answer, if the browser has left with it; else null. */
export function heldState(services: Needs<"signing">, { query, cookieOf }: Arrival): string | null {
  // docs/decisions/0020: empty, missing or doubled is no `state`.
  const [state = "", ...more] = new URLSearchParams(query).getAll("state");
  if (more.length > 0 || !STATE.test(state)) return null;
  return services.signing.operators.verifyOidcCookie(state, cookieOf(state)) ? state : null;
}

/** The browser is back: the `state` is its own and counts once, then the provider is asked. Throws Problem 409 or 502. */
export async function handleCallback(
  services: Needs<"db" | "operatorSignIn" | "publicUrl" | "signing">,
  arrival: Arrival,
  purpose: FlowPurpose,
): Promise<TripOutcome> {
  const { provider } = requireOidc(services);
  const state = heldState(services, arrival);
  if (state === null) return { kind: "refused", reason: "oidc_state" };
  const attempt = await takeOidcAttempt(services.db, hashState(state), sessionIdOf(purpose));
  if (!attempt) return { kind: "refused", reason: "oidc_state" };
  try {
    const answer = new URLSearchParams(arrival.query);
    const identity = await provider.arrival(answer, flowOf(services, state, purpose));
    return { kind: "arrived", identity, state, returnTo: attempt.returnTo };
  } catch (error) {
    return { kind: "refused", reason: reasonOf(services, error) };
  }
}

/** Throws Problem 502, and what is no answer of the provider. */
export function reasonOf(services: Needs<"operatorSignIn">, error: unknown): OidcRefusal {
  if (!(error instanceof OidcError)) throw error;
  if (error.kind === "unavailable") throw unavailable(services);
  return error.kind === "denied" ? "oidc_denied" : "oidc_failed";
}

function unavailable({ operatorSignIn: { byPassword } }: Needs<"operatorSignIn">): Problem {
  const message = `The provider of single sign-on can't be asked just now. Try again shortly${byPassword ? ", or sign in by password" : ""}.`;
  return new Problem("internal_error", message, {
    status: 502,
    details: [{ message, code: "oidc_unavailable" }],
  });
}

const SENTENCES: Readonly<Record<OidcRefusal, string>> = {
  oidc_state:
    "This answer of the provider is not for this browser, or too late, or was used already. Begin again.",
  oidc_denied: "The provider did not sign you in. Begin again, or ask those who run it.",
  oidc_failed: "What the provider answered can't be relied on. The service's log says why.",
  oidc_unverified: "The provider names no address of mail of yours that it has verified.",
  oidc_unknown: "No operator has your address of mail. An admin makes one with it.",
  oidc_taken:
    "The operator with your address of mail is somebody else at the provider. An admin can unlink them: `latchkey operators unlink`.",
  oidc_disabled: "This operator is disabled.",
};

/** 401 for who signs in; 403 for who is signed in, and stays so. */
export function refuseFlow(reason: OidcRefusal, purpose: FlowPurpose["kind"]): Problem {
  const message = SENTENCES[reason];
  const type = purpose === "sign_in" ? "authentication_error" : "authorization_error";
  return new Problem(type, message, { details: [{ message, code: reason }] });
}
