import type { FastifyRequest } from "fastify";
import { checkIdempotencyKey } from "#domain/idempotency.ts";
import { invalidField } from "#domain/problem.ts";

/** The request's `Idempotency-Key`, or null when it sends none. Throws Problem 422. Spec, Limits. */
export function readIdempotencyKey(request: FastifyRequest): string | null {
  // headersDistinct: Node joins a doubled header to one text otherwise.
  const sent = request.raw.headersDistinct["idempotency-key"];
  if (sent === undefined) return null;
  // Node hands headers over as latin1; the key is UTF-8, and its characters are counted as such.
  const values = sent.map((value) => Buffer.from(value, "latin1").toString("utf8"));
  const problem = checkIdempotencyKey(values);
  if (problem !== null) throw invalidField("Idempotency-Key", problem);
  return values[0] ?? null;
}
