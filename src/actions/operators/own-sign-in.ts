import { randomBytes } from "node:crypto";
import { recordAudit } from "#db/audit-entries.ts";
import { readClock } from "#db/connection/clock.ts";
import { deleteOtherSessions, rotateOperatorSession } from "#db/operators/operator-sessions.ts";
import {
  changeOperator,
  confirmTotp,
  limitPassword,
  lockOperator,
  saveRecoveryCodes,
  saveTotpNonce,
} from "#db/operators/operators.ts";
import { forgetSignIns } from "#db/operators/operator-throttle.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditAction } from "#domain/audit-actions.ts";
import type { AuditEvent } from "#domain/audit.ts";
import { limits } from "#domain/limits.ts";
import { explainPassword } from "#domain/operator.ts";
import { invalidField, Problem } from "#domain/problem.ts";
import { matchTotpCode, writeOperatorTotpUri } from "#domain/totp.ts";
import { must } from "#lib/assert.ts";
import { randomReadable } from "#lib/new-id.ts";
import type { Needs } from "#actions/services.ts";
import { actorOf, type OperatorCaller } from "./operator-caller.ts";
import { wrongCode } from "./own-session.ts";
import { plainCode, totpSecretOf } from "./second-factor.ts";
import { newSessionToken, verify } from "./sign-in.ts";
import { throttleSecret } from "./throttle-sign-in.ts";

/** Requires the password again, counted like a sign-in: a stolen session alone can't change how its operator signs in. */
async function provePassword(
  services: Needs<"db" | "passwords" | "signing">,
  caller: OperatorCaller,
  password: string,
): Promise<string> {
  const nameHash = await throttleSecret(services, "password", caller.operatorId);
  const { passwordHash } = must(await lockOperator(services.db, caller.operatorId), "the operator");
  if (!(await verify(services, password, passwordHash)))
    throw invalidField("current_password", "The current password is incorrect.");
  await forgetSignIns(services.db, nameHash);
  return passwordHash;
}

/** Changes the password, ends the other sessions and returns this one's new token. Throws Problem 422 or 429. */
export async function changePassword(
  services: Needs<"db" | "passwords" | "signing">,
  caller: OperatorCaller,
  request: { readonly currentPassword: string; readonly newPassword: string },
): Promise<string> {
  const fault = explainPassword(request.newPassword, caller.email);
  if (fault !== null) throw invalidField("new_password", fault);
  // Keeping a generated password would remove its expiry.
  if (request.newPassword === request.currentPassword)
    throw invalidField("new_password", "Choose a password other than the current one.");
  const before = await provePassword(services, caller, request.currentPassword);
  const passwordHash = await services.passwords.hash(request.newPassword);
  const token = newSessionToken();
  await services.db.transaction(async (tx) => {
    const operator = await lockOperator(tx, caller.operatorId);
    if (operator?.passwordHash !== before) throw raced();
    await changeOperator(tx, operator, { passwordHash });
    const audited = await limitPassword(tx, caller.operatorId, null);
    await keepOnlyThisSession(services, tx, caller, { token, isSteppedUp: false });
    await record(services, tx, caller, "operator.password_change", audited);
  });
  return token;
}

/** Ends all other sessions; this one gets a new token. */
async function keepOnlyThisSession(
  services: Needs<"signing">,
  tx: Database,
  caller: OperatorCaller,
  { token, isSteppedUp }: { readonly token: string; readonly isSteppedUp: boolean },
): Promise<void> {
  await deleteOtherSessions(tx, caller.operatorId, caller.sessionId);
  const hash = services.signing.operators.sessionHash(token);
  if (!(await rotateOperatorSession(tx, caller.sessionId, hash, isSteppedUp))) throw raced();
}

const raced = (): Problem =>
  new Problem("conflict", "Another request has just changed your sign-in. Sign in again.");

async function record(
  services: Needs<"signing">,
  tx: Database,
  caller: OperatorCaller,
  action: AuditAction,
  detail: AuditEvent["detail"] = {},
): Promise<void> {
  await recordAudit(tx, services.signing.audit, {
    accountId: null,
    actor: actorOf(caller),
    action,
    subjectId: caller.operatorId,
    detail,
  });
}

/** Operators who only use single sign-on have no password: a recent sign-in at the provider replaces it. */
const hasJustSignedIn = (caller: OperatorCaller): boolean =>
  caller.signedInBy === "oidc" && (caller.isSteppedUp || (caller.wantsCode && caller.isNew));

/** Creates the key for an authenticator app; it takes effect once a code is confirmed. Throws Problem 409, 422 or 429. */
export async function beginSecondFactor(
  services: Needs<"db" | "passwords" | "signing">,
  caller: OperatorCaller,
  currentPassword: string | null,
): Promise<{ readonly secret: string; readonly uri: string }> {
  if (currentPassword !== null) await provePassword(services, caller, currentPassword);
  else if (!hasJustSignedIn(caller))
    throw invalidField(
      "current_password",
      "Enter your password. If you have none, do this within five minutes of signing in at the provider.",
    );
  const totpNonce = randomBytes(16);
  await services.db.transaction(async (tx) => {
    const operator = must(await lockOperator(tx, caller.operatorId), "the operator");
    if (operator.hasSecondFactor) {
      throw new Problem(
        "conflict",
        "You already have a second factor. An admin can reset it: `latchkey operators reset-totp`.",
      );
    }
    await saveTotpNonce(tx, operator, totpNonce);
  });
  const secret = totpSecretOf(services.signing.operators, { id: caller.operatorId, totpNonce });
  return { secret, uri: writeOperatorTotpUri(secret, caller.email) };
}

/**
 * Confirms the app's first code: from now on sign-ins require one. Ends the other sessions, which were opened without; returns this
 * one's new token and the recovery codes, which are shown once. Throws Problem 409, 422 or 429.
 */
export async function confirmSecondFactor(
  services: Needs<"db" | "signing">,
  caller: OperatorCaller,
  code: string,
): Promise<{ readonly token: string; readonly recoveryCodes: readonly string[] }> {
  const nameHash = await throttleSecret(services, "second-factor", caller.operatorId);
  const token = newSessionToken();
  const recoveryCodes = await services.db.transaction(async (tx) => {
    const operator = must(await lockOperator(tx, caller.operatorId), "the operator");
    if (operator.hasSecondFactor || operator.totpNonce === null) {
      throw new Problem(
        "conflict",
        operator.hasSecondFactor
          ? "You already have a second factor."
          : "Begin first: POST /operator/v1/me/second-factor.",
      );
    }
    const secret = totpSecretOf(services.signing.operators, operator);
    const step = matchTotpCode(secret, plainCode(code), await readClock(tx));
    if (step === undefined) throw wrongCode();
    const audited = await confirmTotp(tx, operator, step);
    const codes = await replaceRecoveryCodes(services, tx, operator.id);
    await keepOnlyThisSession(services, tx, caller, { token, isSteppedUp: true });
    await forgetSignIns(tx, nameHash);
    await record(services, tx, caller, "operator.totp_enrol", audited);
    return codes;
  });
  return { token, recoveryCodes };
}

/** Replaces the remaining recovery codes. Throws Problem 403, 422 or 429. */
export async function renewRecoveryCodes(
  services: Needs<"db" | "passwords" | "signing">,
  caller: OperatorCaller,
  currentPassword: string,
): Promise<readonly string[]> {
  if (!caller.isSteppedUp) {
    const message = "Enter a code of your second factor first: POST /operator/v1/session/step-up.";
    throw new Problem("authorization_error", message, { details: [{ message, code: "step_up_required" }] });
  }
  await provePassword(services, caller, currentPassword);
  return await services.db.transaction(async (tx) => {
    await lockOperator(tx, caller.operatorId);
    const codes = await replaceRecoveryCodes(services, tx, caller.operatorId);
    await record(services, tx, caller, "operator.recovery_codes");
    return codes;
  });
}

/** Codes of 100 bits each. The first character is a letter, so that none looks like an authenticator app's code. */
async function replaceRecoveryCodes(
  { signing }: Needs<"signing">,
  tx: Database,
  operatorId: string,
): Promise<readonly string[]> {
  const codes = Array.from({ length: limits.recoveryCodes }, () =>
    ["R", ...(randomReadable(20).match(/.{4}/g) ?? [])].join("-"),
  );
  const hashes = codes.map((code) => signing.operators.recoveryHash(operatorId, plainCode(code)));
  await saveRecoveryCodes(tx, operatorId, hashes);
  return codes;
}
