import type { FastifyReply, FastifyRequest } from "fastify";
import { authenticate, authorizeScope } from "#actions/keys/authenticate.ts";
import {
  countFailedAuthentication,
  limitRate,
  rateHeaders,
  type RequestKind,
} from "#actions/keys/limit-rate.ts";
import type { Caller, Services } from "#actions/services.ts";
import type { KeyScope } from "#domain/key-scope.ts";
import { Problem } from "#domain/problem.ts";
import { authorizationOf } from "./request.ts";

/**
 * The first step of every handler: who calls (401), not too often (429), and with the scope for it (403); null: there is nothing that
 * wants one. Nothing of the body is read for it.
 */
export async function enter(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  { kind, scope }: { readonly kind: RequestKind; readonly scope: KeyScope | null },
): Promise<Caller> {
  const caller = await authenticate(services, authorizationOf(request)).catch((error: unknown) => {
    if (error instanceof Problem) countFailedAuthentication(services, services.clientOf(request.raw));
    throw error;
  });
  const allowance = limitRate(services, caller, kind);
  if (allowance) reply.headers(rateHeaders(allowance.rate, allowance.policy, allowance.taken));
  if (scope !== null) authorizeScope(caller, scope);
  return caller;
}
