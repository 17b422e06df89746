import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Faults } from "./faults.ts";

/** Lets the faults that are set strike. The switches themselves are never struck. */
export function addFaults(
  app: FastifyInstance,
  faults: Faults,
  pathOf: (request: FastifyRequest) => string,
): void {
  const isSpared = (path: string): boolean => path.startsWith("/__control");
  app.addHook("onRequest", async (request, reply) => {
    const path = pathOf(request);
    if (isSpared(path)) return;
    const fault = faults.strike(path, ["limit", "unavailable", "slow"]);
    if (fault?.kind === "slow") await sleep(fault.seconds * 1_000);
    if (fault?.kind === "unavailable")
      return reply.code(503).send({ error: "The portal is busy, please try again" });
    if (fault?.kind === "limit")
      return reply
        .code(429)
        .header("retry-after", String(Math.ceil(fault.seconds)))
        .send({ error: "Too many requests" });
  });
  // The request was processed; its answer never arrives. What a client makes of that is the hard part of writing.
  app.addHook("onSend", async (request) => {
    const path = pathOf(request);
    if (request.method === "POST" && !isSpared(path) && faults.strike(path, ["lost_answer"]))
      request.raw.socket.destroy();
  });
}
