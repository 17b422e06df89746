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
 * The first step of every handler: authentication (401), rate limit (429) and scope (403); null: the route needs
 * none. It reads nothing of the body.
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
