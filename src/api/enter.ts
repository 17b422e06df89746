import type { FastifyReply, FastifyRequest } from "fastify";
import { authenticate } from "#actions/authenticate.ts";
import { countFailedAuthentication, limitRate, rateHeaders, type RequestKind } from "#actions/limit-rate.ts";
import type { Caller, Services } from "#actions/services.ts";
import { Problem } from "#domain/problem.ts";
import { authorizationOf } from "./request.ts";

/** The first step of every handler: who calls (401), and whether not too often (429). Nothing of the body is read for it. */
export async function enter(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  kind: RequestKind,
): Promise<Caller> {
  const caller = await authenticate(services, authorizationOf(request)).catch((error: unknown) => {
    if (error instanceof Problem) countFailedAuthentication(services, services.clientOf(request.raw));
    throw error;
  });
  const allowance = limitRate(services, caller, kind);
  if (allowance) reply.headers(rateHeaders(allowance.rate, allowance.policy, allowance.taken));
  return caller;
}
