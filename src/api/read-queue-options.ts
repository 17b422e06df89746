import type { FastifyRequest } from "fastify";
import { invalidField } from "#domain/problem.ts";
import { readQueueOptions, type QueueHeader, type QueueOptions } from "#domain/queue-options.ts";

/** docs/api.md#queue-options: what the request's headers ask of the queue; null: nothing, as most do. Throws Problem 422. */
export function readQueueHeaders(request: FastifyRequest): QueueOptions | null {
  const sent = queueHeadersOf(request);
  if (Object.values(sent).every((text) => text === undefined)) return null;
  const outcome = readQueueOptions(sent);
  if ("refused" in outcome) throw invalidField(outcome.refused.name, outcome.refused.problem);
  return outcome.options;
}

export const queueHeadersOf = ({
  headers,
}: FastifyRequest): Readonly<Record<QueueHeader, string | undefined>> => ({
  "Latchkey-Delay": textOf(headers["latchkey-delay"]),
  "Latchkey-Priority": textOf(headers["latchkey-priority"]),
  "Latchkey-Expires-In": textOf(headers["latchkey-expires-in"]),
});

/** Node joins a header that was sent twice by a comma, which is not a number. */
const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(", ") : value;
