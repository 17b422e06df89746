import type { FastifyReply } from "fastify";
import type { Answer } from "#actions/replay-or-run.ts";

/** Sends an action's answer. Spec, Idempotency 3: a replay is marked only by a header. */
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
