import type { FastifyRequest } from "fastify";
import { invalidField } from "#domain/problem.ts";
import { readQueueOptions as read, type QueueOptions } from "#domain/queue-options.ts";

/** docs/api.md#queue-options: what the request's headers ask of the queue; null: nothing, as most do. Throws Problem 422. */
export function readQueueOptions({ headers }: FastifyRequest): QueueOptions | null {
  const delay = headers["latchkey-delay"];
  const priority = headers["latchkey-priority"];
  const expiresIn = headers["latchkey-expires-in"];
  if (delay === undefined && priority === undefined && expiresIn === undefined) return null;
  const outcome = read({
    "Latchkey-Delay": textOf(delay),
    "Latchkey-Priority": textOf(priority),
    "Latchkey-Expires-In": textOf(expiresIn),
  });
  if ("refused" in outcome) throw invalidField(outcome.refused.header, outcome.refused.problem);
  return outcome.options;
}

/** Node joins a header that was sent twice by a comma, which is not a number. */
const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(", ") : value;
