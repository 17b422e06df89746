import type { FastifyInstance } from "fastify";
import type { OAuthTokens } from "./oauth-tokens.ts";
import { cursorAt, query, readCursor, wholeNumber } from "./parameters.ts";
import { mulberry32 } from "./random.ts";
import { bearerOf } from "./shipment-tokens.ts";

export interface Transaction {
  readonly id: string;
  /** YYYY-MM-DD */
  readonly booked: string;
  /** Decimal text; what was paid out begins with a minus. */
  readonly amount: string;
  readonly currency: "EUR";
  readonly counterparty: string;
  readonly reference: string;
}

export const TRANSACTION_COUNT = 260;
/** Booked without a counterparty, as cash is. */
export const WITHOUT_COUNTERPARTY = 99;
const PAGE_ROWS = 20;
const COUNTERPARTIES = [
  "Alder & Finch",
  "Baxter, Hale and Sons",
  "Cobalt Freight",
  "Gruppo Lanterna",
] as const;

/** The same seed gives the same transactions on every machine; the latest comes first, as in a bank. */
export function generateTransactions(seed: number): readonly Transaction[] {
  const random = mulberry32(seed);
  return Array.from({ length: TRANSACTION_COUNT }, (_, index) => {
    const day = new Date(Date.UTC(2026, 5, 30) - index * 86_400_000);
    const cents = 100 + Math.floor(random() * 500_000);
    const amount = `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")}`;
    const name = COUNTERPARTIES[Math.floor(random() * COUNTERPARTIES.length)] ?? "";
    return {
      id: `TX-${String(TRANSACTION_COUNT - index).padStart(6, "0")}`,
      booked: day.toISOString().slice(0, 10),
      amount: random() < 0.4 ? amount : `-${amount}`,
      currency: "EUR",
      counterparty: index === WITHOUT_COUNTERPARTY ? "" : name,
      reference: `Invoice ${1_000 + Math.floor(random() * 9_000)}`,
    };
  });
}

/** `GET /api/bank/transactions?cursor=`: `{ transactions, next_cursor }`, for access tokens of the portal's own server. */
export function addBankRoutes(
  app: FastifyInstance,
  tokens: OAuthTokens,
  transactions: readonly Transaction[],
): void {
  app.get("/api/bank/transactions", async (request, reply) => {
    const grant = tokens.use(bearerOf(request));
    if (!grant)
      return reply
        .code(401)
        .header("www-authenticate", 'Bearer realm="Northwind", error="invalid_token"')
        .send({ error: "The access token is not good, or not any more" });
    const cursor = query(request, "cursor");
    const start = cursor === undefined ? 0 : readCursor(cursor, transactions.length);
    const limit = wholeNumber(query(request, "limit") ?? String(PAGE_ROWS), 1, PAGE_ROWS);
    if (start === undefined || limit === undefined)
      return reply.code(400).send({ error: "cursor is not one that this API gave, or limit is over 20" });
    const end = start + limit;
    const next = end < transactions.length ? cursorAt(end) : null;
    return { transactions: transactions.slice(start, end), next_cursor: next };
  });
}
