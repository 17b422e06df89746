import type { FastifyReply, FastifyRequest } from "fastify";
import type { Services } from "#actions/services.ts";

/** Answers one endpoint. Throws Problem. */
export type Handler = (
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<FastifyReply>;

/** All `Authorization` headers of the request, because two must be detected (Node would silently use the first). */
export function authorizationOf(request: FastifyRequest): readonly string[] {
  return request.raw.headersDistinct["authorization"] ?? [];
}

/** A decoded path parameter. */
export function pathParameter(request: FastifyRequest, name: string): string {
  const value = (request.params as Record<string, unknown>)[name];
  return typeof value === "string" ? value : "";
}

/** Aborted once the client has gone, or the answer has been sent. */
export function untilGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  if (reply.raw.destroyed) gone.abort();
  return gone.signal;
}
