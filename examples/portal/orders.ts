import type { FastifyInstance } from "fastify";
import { query } from "./parameters.ts";
import { type SignedIn, unauthenticated } from "./signed-in.ts";

/** An order that a supplier has placed. */
export interface Order {
  readonly id: string;
  readonly article: string;
  readonly quantity: number;
  readonly unit_price: number;
  readonly placed_by: string;
}

export interface Orders {
  readonly all: readonly Order[];
  /** How many were refused because their token was known already. */
  readonly duplicates: number;
}

const ORDERS_MAX = 10_000;
const TOKEN = /^[\x21-\x7e]{8,128}$/;

/** `POST /api/orders` places one order a token, and refuses the second; `GET /api/orders?token=` says whether it is there. */
export function addOrderRoutes(app: FastifyInstance, signedIn: SignedIn): Orders {
  const byToken = new Map<string, Order>();
  let duplicates = 0;
  app.post("/api/orders", async (request, reply) => {
    const user = signedIn(request);
    if (!user) return unauthenticated(reply);
    const token = String(request.headers["idempotency-key"] ?? "");
    if (!TOKEN.test(token)) return reply.code(400).send({ error: "An order needs an Idempotency-Key" });
    const known = byToken.get(token);
    if (known) {
      duplicates += 1;
      return reply.code(409).send({ error: "There is an order with this Idempotency-Key", id: known.id });
    }
    const problem = problemOf(request.body);
    if (problem !== null) return reply.code(422).send({ error: problem });
    if (byToken.size >= ORDERS_MAX) return reply.code(507).send({ error: "The order book is full" });
    const { article, quantity, unit_price } = request.body as Order;
    const id = `ORD-${String(byToken.size + 1).padStart(4, "0")}`;
    const order: Order = { id, article, quantity, unit_price, placed_by: user.account.username };
    byToken.set(token, order);
    return reply.code(201).send(order);
  });
  app.get("/api/orders", async (request, reply) => {
    if (!signedIn(request)) return unauthenticated(reply);
    const token = query(request, "token");
    const found = token === undefined ? [...byToken.values()] : [byToken.get(token) ?? []].flat();
    return { orders: found };
  });
  return {
    get all() {
      return [...byToken.values()];
    },
    get duplicates() {
      return duplicates;
    },
  };
}

function problemOf(body: unknown): string | null {
  if (typeof body !== "object" || body === null) return "An order is a JSON object";
  const { article, quantity, unit_price } = body as Partial<Record<keyof Order, unknown>>;
  if (typeof article !== "string" || !/^[A-Z]{2}-\d{3}$/.test(article)) return "article must be like AB-123";
  if (typeof quantity !== "number" || !Number.isInteger(quantity) || quantity < 1)
    return "quantity must be a whole number from 1";
  if (typeof unit_price !== "number" || !(unit_price > 0)) return "unit_price must be more than 0";
  return null;
}
