import { recordAudit } from "#db/audit-entries.ts";
import {
  findOperatorByName,
  forgetSignIns,
  lockOperator,
  renewPasswordHash,
  type StoredOperator,
} from "#db/operators.ts";
import { normaliseOperatorName } from "#domain/operator.ts";
import { Problem } from "#domain/problem.ts";
import { randomBase62 } from "#lib/new-id.ts";
import { isOutdatedHash, PasswordsBusy } from "#lib/password.ts";
import type { Services } from "#actions/services.ts";
import { openSession, type NewcomerBrowser } from "./open-session.ts";
import { takeSecondFactor } from "./second-factor.ts";
import { throttleAddress, throttleSecret, tooMany } from "./throttle-sign-in.ts";

export interface SignInRequest extends NewcomerBrowser {
  readonly email: string;
  readonly password: string;
  /** Of the app, or a recovery code; null: not given. */
  readonly code: string | null;
}

export const newSessionToken = (): string => randomBase62(43);

/**
 * Design, page 6, 5.10. The same answer after the same work for a name that nobody has, a disabled operator and a wrong
 * password. Gives the token of a new session. Throws Problem 401 or 429.
 */
export async function signIn(services: Services, request: SignInRequest): Promise<string> {
  throttleAddress(services, request.address);
  if (!services.operatorSignIn.byPassword)
    throw new Problem("authorization_error", "Nobody signs in by password here. Use single sign-on.");
  const name = normaliseOperatorName(request.email);
  const nameHash = await throttleSecret(services, name);
  const operator = await findOperatorByName(services.db, name);
  const isRight = await verify(services, request.password, operator?.passwordHash ?? null);
  if (!operator || !isRight || operator.disabledAt !== null)
    throw await fail(services, operator, request.address, "password");
  if (operator.hasSecondFactor && request.code === null) throw secondFactorRequired();
  const token = newSessionToken();
  if (!(await admit(services, operator, request, nameHash, token)))
    throw await fail(services, operator, request.address, "second_factor");
  await renewHash(services, operator, request.password);
  return token;
}

/** Throws Problem 429 when too many wait for their turn. */
export async function verify(services: Services, password: string, hash: string | null): Promise<boolean> {
  try {
    return await services.passwords.verify(password, hash);
  } catch (error) {
    throw error instanceof PasswordsBusy ? tooMany(1) : error;
  }
}

/** In one transaction, with the operator's row locked: somebody may disable them just now. False: the code is wrong. */
async function admit(
  services: Services,
  { id: operatorId, passwordHash }: StoredOperator,
  request: SignInRequest,
  nameHash: Uint8Array,
  token: string,
): Promise<boolean> {
  const keys = services.signing.operators;
  return await services.db.transaction(async (tx) => {
    const operator = await lockOperator(tx, operatorId);
    if (!operator || operator.disabledAt !== null || operator.passwordHash !== passwordHash) return false;
    let factor: "app" | "recovery" | null = null;
    if (operator.hasSecondFactor) {
      factor = await takeSecondFactor(tx, keys, operator, request.code ?? "");
      if (factor === null) return false;
    }
    await forgetSignIns(tx, nameHash);
    await openSession(services, tx, {
      operatorId,
      browser: request,
      token,
      signedInBy: "password",
      isSteppedUp: factor !== null,
      secondFactor: factor,
    });
    return true;
  });
}

/** On record, whether or not the name is somebody's; never the name that was typed, which may be a password. */
async function fail(
  services: Services,
  operator: StoredOperator | undefined,
  address: string,
  reason: "password" | "second_factor",
): Promise<Problem> {
  await recordAudit(services.db, services.signing.audit, {
    accountId: null,
    actor: { kind: "service" },
    action: "operator.sign_in_failed",
    subjectId: operator?.id ?? "unknown",
    detail: { reason, address },
  });
  return new Problem("authentication_error", "The name, the password or the code is not right.");
}

function secondFactorRequired(): Problem {
  const message = "Give a code of your second factor, or a recovery code, as well.";
  return new Problem("authentication_error", message, {
    details: [{ message, code: "second_factor_required", field: "code" }],
  });
}

/** Parameters were raised since the hash was made. */
async function renewHash(services: Services, operator: StoredOperator, password: string): Promise<void> {
  if (!isOutdatedHash(operator.passwordHash)) return;
  const renewed = await services.passwords.hash(password).catch((error: unknown) => {
    // Next time.
    if (error instanceof PasswordsBusy) return null;
    throw error;
  });
  if (renewed !== null) await renewPasswordHash(services.db, operator.id, operator.passwordHash, renewed);
}
