import type { FastifyReply } from "fastify";
import type { Answer } from "#actions/replay-or-run.ts";

/** Sends what an action answered. Spec, Idempotency 3: a replay says so in a header, and nowhere else. */
export function sendAnswer(
  reply: FastifyReply,
  outcome: { readonly answer: Answer; readonly replayed: boolean },
): FastifyReply {
  if (outcome.replayed) reply.header("Idempotent-Replay", "true");
  reply.code(outcome.answer.status);
  return outcome.answer.body === "" ? reply.send() : sendJson(reply, outcome.answer.body);
}

export function sendJson(reply: FastifyReply, body: string): FastifyReply {
  return reply.type("application/json; charset=utf-8").send(body);
}
