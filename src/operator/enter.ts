import type { FastifyRequest } from "fastify";
import {
  authenticateOperator,
  authorizeOperator,
  type Principal,
} from "#actions/operators/operator-caller.ts";
import { limitToTestMode } from "#actions/operators/account-limit.ts";
import { authenticateToken, readOperatorToken } from "#actions/operators/token-caller.ts";
import { countFailedAuthentication, limitOperator } from "#actions/keys/limit-rate.ts";
import type { Services } from "#actions/services.ts";
import type { OperatorOperation } from "#contract/operator/operation.ts";
import type { Permission } from "#domain/operator.ts";
import { invalidField, Problem } from "#domain/problem.ts";
import { readSessionToken } from "./cookie.ts";

const isUnsafe = ({ method }: Pick<OperatorOperation, "method">): boolean => method !== "get";

/**
 * The first step of every handler except open ones: authentication (401), rate limit (429), origin of the request, and permission
 * (403).
 */
export async function enter(
  services: Services,
  request: FastifyRequest,
  operation: Pick<OperatorOperation, "method">,
  permission: Permission,
): Promise<{ readonly caller: Principal; readonly token: string }> {
  if (isUnsafe(operation)) refuseForeign(services, request);
  const operatorToken = readOperatorToken(request.raw.headersDistinct["authorization"] ?? []);
  if (operatorToken !== null)
    return { caller: await enterByToken(services, request, operatorToken, permission), token: "" };
  const token = readSessionToken(request, services);
  const caller = await inMode(services, request, await authenticateOperator(services, token));
  limitOperator(services, caller.sessionId);
  if (isUnsafe(operation) && !services.signing.operators.verifyCsrf(token, csrfOf(request)))
    throw forged("The header X-CSRF-Token must be the `csrf_token` of GET /operator/v1/me.");
  authorizeOperator(caller, permission);
  return { caller, token };
}

/** No page can make a browser send this header to us, so no CSRF token is needed. */
async function enterByToken(
  services: Services,
  request: FastifyRequest,
  token: string,
  permission: Permission,
): Promise<Principal> {
  const caller = await authenticateToken(services, token).catch((error: unknown) => {
    if (error instanceof Problem) countFailedAuthentication(services, services.clientOf(request.raw));
    throw error;
  });
  limitOperator(services, caller.tokenId);
  const entered = await inMode(services, request, caller);
  authorizeOperator(entered, permission);
  return entered;
}

/** docs/operator-api.md#test-mode: by this header a caller is limited to the test accounts of its accounts. Throws Problem 422. */
async function inMode<C extends Principal>(
  services: Services,
  request: FastifyRequest,
  caller: C,
): Promise<C> {
  const { "latchkey-mode": modes = ["live"] } = request.raw.headersDistinct;
  if (modes.length !== 1 || (modes[0] !== "live" && modes[0] !== "test"))
    throw invalidField("Latchkey-Mode", "It must be live or test.");
  return modes[0] === "test" ? await limitToTestMode(services.db, caller) : caller;
}

/**
 * For open operations: there is no session yet with which the header's value could be compared, but a page of another site can't
 * send the header at all. Throws Problem 403. Sign-in attempts are counted once the name is known (`throttle-sign-in.ts`): a
 * correct password is never refused because of other clients at the same address, and bodies are small (`openBodyBytesMax`).
 */
export function enterOpen(
  services: Services,
  request: FastifyRequest,
  operation: Pick<OperatorOperation, "method">,
): void {
  if (!isUnsafe(operation)) return;
  refuseForeign(services, request);
  if (csrfOf(request) === "") throw forged("The header X-CSRF-Token must be present, with any value.");
}

function csrfOf(request: FastifyRequest): string {
  const values = request.raw.headersDistinct["x-csrf-token"] ?? [];
  return values.length === 1 ? (values[0] ?? "") : "";
}

/**
 * docs/decisions/0022: CSRF by Origin and Sec-Fetch-Site, and a token. A browser states the origin of a request; a client that
 * doesn't is not a browser, and has no cookie that another site could abuse.
 */
function refuseForeign(services: Services, request: FastifyRequest): void {
  const site = request.headers["sec-fetch-site"];
  const { origin } = request.headers;
  const isOurs =
    (site === undefined || site === "same-origin") &&
    (origin === undefined || origin === new URL(services.publicUrl()).origin);
  if (!isOurs) throw forged(`The request comes from elsewhere. Use the service at ${services.publicUrl()}.`);
}

function forged(message: string): Problem {
  return new Problem("authorization_error", message, { details: [{ message, code: "csrf" }] });
}
