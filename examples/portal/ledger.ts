import { createHash, timingSafeEqual } from "node:crypto";
import fastify from "fastify";
import { query, wholeNumber } from "./parameters.ts";
import type { Trade } from "./trade.ts";

/** Published: it opens nothing but this ledger, which listens on loopback only. */
export const LEDGER_KEY = "southgate-demo-key-5b1f0c7a";

export interface Ledger {
  readonly url: string;
  /** How many requests it has answered with which status. */
  readonly answered: Readonly<Record<string, number>>;
  close(): Promise<void>;
}

const PAGE_ROWS = 15;

/** The Southgate Ledger: another company's system, with another way in (an API key) and an origin of its own. */
export async function startLedger(port: number, { invoices, receipts }: Trade): Promise<Ledger> {
  const app = fastify({ forceCloseConnections: true });
  const answered: Record<string, number> = {};
  app.addHook("onSend", async (_request, reply) => {
    answered[reply.statusCode] = (answered[reply.statusCode] ?? 0) + 1;
  });
  app.addHook("onRequest", async (request, reply) => {
    if (!isKey(String(request.headers["x-api-key"] ?? "")))
      return reply.code(401).send({ error: "The X-Api-Key is missing or wrong" });
  });
  app.get("/v1/invoices", async (request, reply) => {
    const page = wholeNumber(query(request, "page") ?? "1", 1, 9_999);
    if (page === undefined) return reply.code(400).send({ error: "page must be a number from 1" });
    return { data: invoices.slice((page - 1) * PAGE_ROWS, page * PAGE_ROWS) };
  });
  app.get("/v1/receipts", async (_request, reply) =>
    reply
      .type("application/x-ndjson; charset=utf-8")
      .send(receipts.map((receipt) => `${JSON.stringify(receipt)}\n`).join("")),
  );
  const url = await app.listen({ host: "127.0.0.1", port });
  return { url, answered, close: () => app.close() };
}

// Digests have one length, so the comparison takes the same time for every guess.
function isKey(given: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(LEDGER_KEY));
}
