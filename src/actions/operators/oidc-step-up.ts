import { rotateOperatorSession } from "#db/operators/operator-sessions.ts";
import { lockOperator } from "#db/operators/operators.ts";
import { Problem } from "#domain/problem.ts";
import type { Services } from "#actions/services.ts";
import {
  handleCallback,
  startAuthorization,
  refuseFlow,
  type OidcCallback,
  type AuthorizationRedirect,
} from "./oidc-flow.ts";
import type { OperatorCaller } from "./operator-caller.ts";
import { recordStepUp } from "./own-session.ts";
import { newSessionToken } from "./sign-in.ts";
import { throttleOperator } from "./throttle-sign-in.ts";

/** Begins a step-up: the provider must authenticate the operator again. Throws Problem 409, 429 or 502. */
export async function beginOidcStepUp(
  services: Services,
  caller: OperatorCaller,
): Promise<AuthorizationRedirect> {
  requireProviderSession(caller);
  throttleOperator(services, caller.operatorId);
  return await startAuthorization(services, purposeOf(caller), "/");
}

const purposeOf = ({ sessionId }: OperatorCaller) => ({ kind: "step_up", sessionId }) as const;

function requireProviderSession(caller: OperatorCaller): void {
  if (caller.isVouchedFor) return;
  throw new Problem(
    "conflict",
    "This session was not opened through the provider. Enter a code of your second factor: POST /operator/v1/session/step-up.",
  );
}

/**
 * Finishes a step-up: the same person must have authenticated recently. Returns the session's new token and invalidates the old one.
 * Throws Problem 403, 409, 429 or 502.
 */
export async function finishOidcStepUp(
  services: Services,
  caller: OperatorCaller,
  callback: OidcCallback,
): Promise<{ readonly token: string; readonly state: string }> {
  requireProviderSession(caller);
  throttleOperator(services, caller.operatorId);
  const flow = await handleCallback(services, callback, purposeOf(caller));
  if (flow.kind === "refused") throw refuseFlow(flow.reason, "step_up");
  const { issuer, subject } = flow.identity;
  const token = newSessionToken();
  const isTaken = await services.db.transaction(async (tx) => {
    const operator = await lockOperator(tx, caller.operatorId);
    // A different person signed in there.
    if (operator?.oidcIssuer !== issuer || operator.oidcSubject !== subject) return false;
    const hash = services.signing.operators.sessionHash(token);
    // The session has ended in the meantime.
    if (!(await rotateOperatorSession(tx, caller.sessionId, hash, true))) return false;
    await recordStepUp(tx, services, caller, "provider");
    return true;
  });
  if (!isTaken) throw refuseFlow("oidc_taken", "step_up");
  return { token, state: flow.state };
}
