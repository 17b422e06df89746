import { findLiveSession, touchOperatorSession, type LiveSession } from "#db/operators/operator-sessions.ts";
import type { AuditActor } from "#domain/audit.ts";
import { limits } from "#domain/limits.ts";
import {
  isOfInstallation,
  isPersonal,
  mayDo,
  mustHaveSecondFactor,
  stepUpOf,
  type Permission,
  type StepUp,
} from "#domain/operator.ts";
import { Problem } from "#domain/problem.ts";
import type { Needs } from "#actions/services.ts";
import type { TokenCaller } from "./token-caller.ts";

/** A signed-in operator. */
export interface OperatorCaller extends Omit<LiveSession, "id" | "wasSteppedUp"> {
  readonly kind: "session";
  readonly sessionId: string;
  /** Whether their single sign-on provider replaces the second factor. */
  readonly isVouchedFor: boolean;
  /** Whether our own second factor is required in addition to single sign-on. */
  readonly wantsCode: boolean;
}

/** A person who has signed in, or a program with a token: the first parameter of every action of the operator API. */
export type Principal = OperatorCaller | TokenCaller;

/** The actor of an audit entry. */
export const actorOf = (caller: Principal): AuditActor =>
  caller.kind === "token"
    ? { kind: "operator_token", id: caller.tokenId }
    : { kind: "operator", id: caller.operatorId };

/** Null: a token, which is no operator. */
export const operatorIdOf = (caller: Principal): string | null =>
  caller.kind === "token" ? null : caller.operatorId;

/** The id of the session or of the token: what limits and fair shares are counted by. */
export const holderOf = (caller: Principal): string =>
  caller.kind === "token" ? caller.tokenId : caller.sessionId;

/** Recorded with decisions: an operator's email, or a token's name with the operator for whom it acts. */
export function nameOf(caller: Principal): string {
  if (caller.kind === "session") return caller.email;
  return caller.actsFor ? `${caller.actsFor.email} (token ${caller.name})` : `token ${caller.name}`;
}

/** The format of a session token; other texts cost no query. */
const SESSION_TOKEN = /^[0-9A-Za-z]{43}$/;

/** Finds the operator of a session token. Never cached, so that revoked rights end immediately. Throws Problem 401. */
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
    kind: "session",
    sessionId,
    ...rest,
    // Without single sign-on, no provider replaces the second factor.
    isVouchedFor: isOfProvider && oidc !== null && !oidc.requireTotp,
    wantsCode: isOfProvider && oidc?.requireTotp !== false && !wasSteppedUp,
  };
}

function signedOut(): Problem {
  return new Problem("authentication_error", "You are not signed in, or your session has expired. Sign in.");
}

/** docs/decisions/0022: default deny; a second factor where required; step-up for dangerous actions. Throws Problem 403. */
export function authorizeOperator(caller: Principal, permission: Permission): void {
  if (!mayDo(caller.role, permission))
    throw new Problem(
      "authorization_error",
      `The role ${caller.role} does not have this permission (${permission}).`,
    );
  if (caller.accountIds !== null && isOfInstallation(permission))
    throw new Problem(
      "authorization_error",
      `You are limited to some accounts, and this permission (${permission}) can't be limited to them.`,
    );
  if (caller.kind === "token") {
    if (isPersonal(permission)) throw personWanted(permission);
    return;
  }
  if (permission === "self.manage") return;
  const need = needOf(caller);
  if (need === "password") throw passwordWanted();
  if (need === "second_factor") throw factorMissing();
  if (need === "code") throw factorWanted(caller);
  const stepUp = stepUpOf(permission);
  if (stepUp !== null) requireFactor(caller, stepUp);
}

/**
 * Requires a recent second factor. Also for actions whose danger depends on their subject. A token has none: it was created by an
 * admin who gave one, for programs that can't. Throws Problem 403.
 */
export function requireFactor(caller: Principal, stepUp: StepUp): void {
  if (caller.kind === "token") return;
  if (!hasFactor(caller)) throw factorMissing();
  if (stepUp === "now" ? !caller.isSteppedUp : !caller.isSteppedUpLately) throw factorWanted(caller);
}

const passwordWanted = (): Problem =>
  refuse(
    "password_change_required",
    "Your password was generated for you. Change it first: POST /operator/v1/me/password.",
  );

const factorMissing = (): Problem =>
  refuse("second_factor_missing", "Set up a second factor first: POST /operator/v1/me/second-factor.");

const factorWanted = (caller: OperatorCaller): Problem =>
  refuse(
    "step_up_required",
    caller.hasSecondFactor
      ? "Enter a code of your second factor first: POST /operator/v1/session/step-up."
      : "Sign in at your provider again first: POST /operator/v1/session/step-up/oidc/begin.",
  );

const hasFactor = (caller: OperatorCaller): boolean => caller.hasSecondFactor || caller.isVouchedFor;

/** The step required before anything else; null: none. */
export function needOf(caller: OperatorCaller): "password" | "second_factor" | "code" | null {
  if (caller.hasFirstPassword && caller.signedInBy === "password") return "password";
  if (caller.wantsCode) return caller.hasSecondFactor ? "code" : "second_factor";
  return mustHaveSecondFactor(caller.role) && !hasFactor(caller) ? "second_factor" : null;
}

const personWanted = (permission: Permission): Problem =>
  refuse(
    "person_required",
    `No operator token has this permission (${permission}). Sign in to the dashboard.`,
  );

function refuse(
  code: "password_change_required" | "second_factor_missing" | "step_up_required" | "person_required",
  message: string,
): Problem {
  return new Problem("authorization_error", message, { details: [{ message, code }] });
}
