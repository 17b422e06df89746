import { findLiveSession, touchOperatorSession, type LiveSession } from "#db/operators/operator-sessions.ts";
import { limits } from "#domain/limits.ts";
import { mayDo, mustHaveSecondFactor, stepUpOf, type Permission, type StepUp } from "#domain/operator.ts";
import { Problem } from "#domain/problem.ts";
import type { Needs } from "#actions/services.ts";

/** A signed-in operator: the first thing every action of the operator API wants. */
export interface OperatorCaller extends Omit<LiveSession, "id" | "wasSteppedUp"> {
  readonly sessionId: string;
  /** The provider that they have signed in at answers for the second factor. */
  readonly isVouchedFor: boolean;
  /** They have signed in at the provider, and our own second factor is wanted as well. */
  readonly wantsCode: boolean;
}

/** The actor of an audit entry. */
export const actorOf = (caller: Pick<OperatorCaller, "operatorId">) =>
  ({ kind: "operator", id: caller.operatorId }) as const;

/** What a browser holds; another text costs no query. */
const SESSION_TOKEN = /^[0-9A-Za-z]{43}$/;

/** Whose session the token is. Asked anew each time: what was taken away is gone at once. Throws Problem 401. */
export async function authenticateOperator(
  services: Needs<"db" | "operatorSignIn" | "signing">,
  token: string,
): Promise<OperatorCaller> {
  if (!SESSION_TOKEN.test(token)) throw signedOut();
  const times = {
    idleMs: limits.operatorIdleMs,
    stepUpMs: limits.operatorStepUpMs,
    lateStepUpMs: limits.operatorLateStepUpMs,
  };
  const session = await findLiveSession(services.db, services.signing.operators.sessionHash(token), times);
  if (!session) throw signedOut();
  await touchOperatorSession(services.db, session.id);
  const { id: sessionId, wasSteppedUp, ...rest } = session;
  const { oidc } = services.operatorSignIn;
  const isOfProvider = session.signedInBy === "oidc";
  return {
    sessionId,
    ...rest,
    // Where there is no single sign-on any more nobody answers for anybody.
    isVouchedFor: isOfProvider && oidc !== null && !oidc.requireTotp,
    wantsCode: isOfProvider && oidc?.requireTotp !== false && !wasSteppedUp,
  };
}

function signedOut(): Problem {
  return new Problem("authentication_error", "You are not signed in, or your session is over. Sign in.");
}

/** docs/decisions/0022: default deny; the second factor for those who must have one; step-up for what is dangerous. Throws 403. */
export function authorizeOperator(caller: OperatorCaller, permission: Permission): void {
  if (!mayDo(caller.role, permission))
    throw new Problem("authorization_error", `The role ${caller.role} may not do this (${permission}).`);
  if (permission === "self.manage") return;
  const need = needOf(caller);
  if (need === "password") throw passwordWanted();
  if (need === "second_factor") throw factorMissing();
  if (need === "code") throw factorWanted(caller);
  const stepUp = stepUpOf(permission);
  if (stepUp !== null) requireFactor(caller, stepUp);
}

/** The second factor, given so lately. For what turns out to be dangerous by what it is about, too. Throws 403. */
export function requireFactor(caller: OperatorCaller, stepUp: StepUp): void {
  if (!hasFactor(caller)) throw factorMissing();
  if (stepUp === "now" ? !caller.isSteppedUp : !caller.isSteppedUpLately) throw factorWanted(caller);
}

const passwordWanted = (): Problem =>
  refuse(
    "password_change_required",
    "Your password was made for you. Change it first: POST /operator/v1/me/password.",
  );

const factorMissing = (): Problem =>
  refuse("second_factor_missing", "Set up a second factor first: POST /operator/v1/me/second-factor.");

const factorWanted = (caller: OperatorCaller): Problem =>
  refuse(
    "step_up_required",
    caller.hasSecondFactor
      ? "Give a code of your second factor first: POST /operator/v1/session/step-up."
      : "Sign in at your provider again first: POST /operator/v1/session/step-up/oidc/begin.",
  );

const hasFactor = (caller: OperatorCaller): boolean => caller.hasSecondFactor || caller.isVouchedFor;

/** What somebody must do before anything else; null: nothing. */
export function needOf(caller: OperatorCaller): "password" | "second_factor" | "code" | null {
  if (caller.hasFirstPassword && caller.signedInBy === "password") return "password";
  if (caller.wantsCode) return caller.hasSecondFactor ? "code" : "second_factor";
  return mustHaveSecondFactor(caller.role) && !hasFactor(caller) ? "second_factor" : null;
}

function refuse(
  code: "password_change_required" | "second_factor_missing" | "step_up_required",
  message: string,
): Problem {
  return new Problem("authorization_error", message, { details: [{ message, code }] });
}
