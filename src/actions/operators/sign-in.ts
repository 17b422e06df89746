import {
  findOperatorByName,
  lockOperator,
  renewPasswordHash,
  type StoredOperator,
} from "#db/operators/operators.ts";
import { forgetSignIns } from "#db/operators/operator-throttle.ts";
import { networkOf } from "#domain/client-address.ts";
import { limits } from "#domain/limits.ts";
import { normaliseOperatorName } from "#domain/operator.ts";
import { Problem } from "#domain/problem.ts";
import { randomBase62 } from "#lib/new-id.ts";
import { PasswordsBusy, type PasswordTurn } from "#lib/password-turns.ts";
import { isOutdatedHash } from "#lib/password.ts";
import type { Needs, Services } from "#actions/services.ts";
import type { KnownBrowserCookies } from "./known-browser.ts";
import { openSession, recordRefused, type NewcomerBrowser } from "./open-session.ts";
import { isAppCode, isSecondFactor, takeSecondFactor } from "./second-factor.ts";
import { admitAttempt, tooMany, tooManySignIns } from "./throttle-sign-in.ts";

export interface SignInRequest extends NewcomerBrowser {
  readonly email: string;
  readonly password: string;
  /** A code of the app, or a recovery code; null: not given. */
  readonly code: string | null;
  readonly knownBrowsers: KnownBrowserCookies;
}

export const newSessionToken = (): string => randomBase62(43);

/**
 * docs/decisions/0022. An unknown email, a disabled operator and a wrong password get the same answer after the same work. Returns the
 * token of a new session. Throws Problem 401 or 429.
 */
export async function signIn(services: Services, request: SignInRequest): Promise<string> {
  if (!services.operatorSignIn.byPassword)
    throw new Problem("authorization_error", "Signing in with a password is disabled. Use single sign-on.");
  const name = normaliseOperatorName(request.email);
  const operator = await findOperatorByName(services.db, name);
  const { address, knownBrowsers } = request;
  const admission = await admitAttempt(services, {
    name,
    isUnknown: operator === undefined,
    address,
    knownBrowsers,
  });
  if (admission.kind === "over") return await signInOver(services, request, operator, admission.seconds);
  const isKnown = admission.kind === "browser";
  const turn = isKnown ? "known" : await turnOf(services, operator, request);
  const isRight = await verifyNewcomer(services, request.password, operator, turn);
  if (!operator || !isRight || operator.disabledAt !== null)
    throw await fail(services, operator, address, "password");
  if (operator.isPasswordOver) throw passwordExpired();
  if (operator.hasSecondFactor && request.code === null) throw secondFactorRequired();
  const token = newSessionToken();
  if (!(await admit(services, operator, request, admission.counter, token)))
    throw await fail(services, operator, address, "second_factor");
  await renewHash(services, operator, request.password);
  return token;
}

/**
 * A sign-in beyond the throttle: it succeeds only with password and second factor together, which can't be guessed, so that strangers
 * can't lock anyone out. Otherwise the answer reveals nothing: everything is checked whatever is wrong, and neither half is confirmed. A
 * caller who knows the password gets as few guesses at the code here as within the limit. Throws Problem 429.
 */
async function signInOver(
  services: Services,
  request: SignInRequest,
  operator: StoredOperator | undefined,
  seconds: number,
): Promise<string> {
  const { buckets, refusedSignIns } = services;
  const { code } = request;
  if (code === null) {
    refusedSignIns.count(null, "throttled");
    throw tooManySignIns(seconds);
  }
  const isCode = await isSecondFactor(services, operator, code);
  const turn =
    mayUseReservedTurn(services, operator) && isCode ? "known" : { network: networkOf(request.address) };
  const isRight = await verifyNewcomer(services, request.password, operator, turn);
  const guesses = `sign-in-code/${operator?.id ?? "unknown"}`;
  const mayGuess = !isAppCode(code) || buckets.has(guesses, limits.signInCodes);
  if (operator && isRight && !isCode) buckets.take(guesses, limits.signInCodes);
  if (operator && isRight && isCode && mayGuess && operator.disabledAt === null) {
    const token = newSessionToken();
    if (await admit(services, operator, request, null, token)) return token;
  }
  refusedSignIns.count(operator?.id ?? null, "throttled");
  throw tooManySignIns(seconds);
}

/**
 * The priority when more passwords wait than can be checked: known browsers and requests with a correct code first; the others by
 * address, in turn. Codes are checked here so rarely per name that they can't be guessed this way.
 */
async function turnOf(
  services: Needs<"buckets" | "db" | "passwords" | "signing">,
  operator: StoredOperator | undefined,
  { address, code }: SignInRequest,
): Promise<PasswordTurn> {
  const isFirst =
    services.passwords.isBusy &&
    code !== null &&
    mayUseReservedTurn(services, operator) &&
    (await isSecondFactor(services, operator, code));
  return isFirst ? "known" : { network: networkOf(address) };
}

const mayUseReservedTurn = ({ buckets }: Needs<"buckets">, operator: StoredOperator | undefined): boolean =>
  operator !== undefined && buckets.take(`sign-in-turn/${operator.id}`, limits.signInTurns).allowed;

/** Throws Problem 429 when too many wait for their turn. */
async function verifyNewcomer(
  services: Needs<"passwords" | "refusedSignIns">,
  password: string,
  operator: StoredOperator | undefined,
  turn: PasswordTurn,
): Promise<boolean> {
  try {
    return await services.passwords.verify(password, operator?.passwordHash ?? null, turn);
  } catch (error) {
    if (!(error instanceof PasswordsBusy)) throw error;
    services.refusedSignIns.count(null, "throttled");
    throw tooManySignIns(1);
  }
}

/** Checks the password of a signed-in operator. Throws Problem 429 when too many checks are waiting. */
export async function verify(services: Needs<"passwords">, password: string, hash: string): Promise<boolean> {
  try {
    return await services.passwords.verify(password, hash, "known");
  } catch (error) {
    throw error instanceof PasswordsBusy ? tooMany(1) : error;
  }
}

/** In one transaction, with the operator's row locked against concurrent disabling. False: the code is wrong. */
async function admit(
  services: Needs<"db" | "signing">,
  { id: operatorId, passwordHash }: StoredOperator,
  request: SignInRequest,
  /** The counter to clear; null: none. */
  counter: Uint8Array | null,
  token: string,
): Promise<boolean> {
  const keys = services.signing.operators;
  return await services.db.transaction(async (tx) => {
    const operator = await lockOperator(tx, operatorId);
    if (
      !operator ||
      operator.disabledAt !== null ||
      operator.passwordHash !== passwordHash ||
      operator.isPasswordOver
    )
      return false;
    let factor: "app" | "recovery" | null = null;
    if (operator.hasSecondFactor) {
      factor = await takeSecondFactor(tx, keys, operator, request.code ?? "");
      if (factor === null) return false;
    } else if (counter === null) return false;
    if (counter !== null) await forgetSignIns(tx, counter);
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

/** Records a refusal: with its own audit entry for a known email, and never with the typed text, which may be a password. */
async function fail(
  services: Needs<"db" | "refusedSignIns" | "signing">,
  operator: StoredOperator | undefined,
  address: string,
  reason: "password" | "second_factor",
): Promise<Problem> {
  await recordRefused(services, operator?.id ?? null, reason, address);
  return new Problem("authentication_error", "The email, password or code is incorrect.");
}

/** Only returned to callers who know the password. */
function passwordExpired(): Problem {
  const message =
    "This generated password has expired. Ask an admin to reset it, or run `latchkey operators reset-password`.";
  return new Problem("authentication_error", message, {
    details: [{ message, code: "password_expired", field: "password" }],
  });
}

function secondFactorRequired(): Problem {
  const message = "Enter a code of your second factor, or a recovery code, as well.";
  return new Problem("authentication_error", message, {
    details: [{ message, code: "second_factor_required", field: "code" }],
  });
}

/** Whether the hash has older parameters. */
async function renewHash(
  services: Needs<"db" | "passwords">,
  operator: StoredOperator,
  password: string,
): Promise<void> {
  if (!isOutdatedHash(operator.passwordHash)) return;
  const renewed = await services.passwords.hash(password).catch((error: unknown) => {
    // Next time.
    if (error instanceof PasswordsBusy) return null;
    throw error;
  });
  if (renewed !== null) await renewPasswordHash(services.db, operator.id, operator.passwordHash, renewed);
}
