import { recordAudit } from "#db/audit-entries.ts";
import { deleteOperatorSession, rotateOperatorSession } from "#db/operators/operator-sessions.ts";
import type { Database } from "#db/connection/pool.ts";
import { forgetSignIns } from "#db/operators/operator-throttle.ts";
import { lockOperator } from "#db/operators/operators.ts";
import { isId } from "#domain/ids.ts";
import { notFound, Problem } from "#domain/problem.ts";
import { must } from "#lib/assert.ts";
import type { Needs } from "#actions/services.ts";
import { actorOf, type OperatorCaller } from "./operator-caller.ts";
import { takeSecondFactor } from "./second-factor.ts";
import { newSessionToken } from "./sign-in.ts";
import { throttleSecret } from "./throttle-sign-in.ts";

/** Ends a session of the operator's own, this one or another. Throws Problem 404. */
export async function endOwnSession(
  services: Needs<"db" | "signing">,
  caller: OperatorCaller,
  id: string,
): Promise<void> {
  await services.db.transaction(async (tx) => {
    if (!isId("operatorSession", id) || !(await deleteOperatorSession(tx, caller.operatorId, id)))
      throw notFound("Session");
    await recordAudit(tx, services.signing.audit, {
      accountId: null,
      actor: actorOf(caller),
      action: "operator.sign_out",
      subjectId: caller.operatorId,
      detail: { session: id },
    });
  });
}

/**
 * docs/decisions/0022: step-up for dangerous actions. Returns the session's new token and invalidates the old one.
 * Throws Problem 403, 422 or 429.
 */
export async function stepUp(
  services: Needs<"db" | "signing">,
  caller: OperatorCaller,
  code: string,
): Promise<string> {
  if (!caller.hasSecondFactor) {
    const message = "You have no second factor. Set one up: POST /operator/v1/me/second-factor.";
    throw new Problem("authorization_error", message, {
      details: [{ message, code: "second_factor_missing" }],
    });
  }
  const nameHash = await throttleSecret(services, "second-factor", caller.operatorId);
  const token = newSessionToken();
  const keys = services.signing.operators;
  const isTaken = await services.db.transaction(async (tx) => {
    const operator = must(await lockOperator(tx, caller.operatorId), "the operator of a session");
    const factor = operator.hasSecondFactor ? await takeSecondFactor(tx, keys, operator, code) : null;
    if (factor === null) return false;
    // The session has ended in the meantime.
    if (!(await rotateOperatorSession(tx, caller.sessionId, keys.sessionHash(token), true))) return false;
    await forgetSignIns(tx, nameHash);
    await recordStepUp(tx, services, caller, factor);
    return true;
  });
  if (!isTaken) throw wrongCode();
  return token;
}

/** A code is valid for a minute and a half, and can be used once. */
export function wrongCode(): Problem {
  const message = "The code is incorrect or was already used. Wait for the next one.";
  return new Problem("validation_error", message, {
    details: [{ message, code: "invalid_input_data", field: "code" }],
  });
}

/** Inside the transaction of the step-up. */
export async function recordStepUp(
  tx: Database,
  { signing }: Needs<"signing">,
  caller: OperatorCaller,
  factor: "app" | "recovery" | "provider",
): Promise<void> {
  await recordAudit(tx, signing.audit, {
    accountId: null,
    actor: actorOf(caller),
    action: "operator.step_up",
    subjectId: caller.operatorId,
    detail: { session: caller.sessionId, second_factor: factor },
  });
}
