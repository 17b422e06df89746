import type { FastifyInstance } from "fastify";
import { query, wholeNumber } from "./parameters.ts";
import { type SignedIn, unauthenticated } from "./signed-in.ts";
import type { Trade } from "./trade.ts";

const ROWS_MAX = 100;

/** `GET /api/purchase-orders?offset=&limit=`: `{ orders, total }`. */
export function addTradeRoutes(app: FastifyInstance, signedIn: SignedIn, { orders }: Trade): void {
  app.get("/api/purchase-orders", async (request, reply) => {
    if (!signedIn(request)) return unauthenticated(reply);
    const offset = wholeNumber(query(request, "offset") ?? "0", 0, 999_999);
    const limit = wholeNumber(query(request, "limit") ?? String(ROWS_MAX), 1, ROWS_MAX);
    if (offset === undefined || limit === undefined)
      return reply.code(400).send({ error: `offset from 0, limit from 1 to ${ROWS_MAX}` });
    return { orders: orders.slice(offset, offset + limit), total: orders.length };
  });
}
