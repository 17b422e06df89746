import type { FastifyInstance } from "fastify";
import { type Invoice, invoicesCsv } from "./invoices.ts";
import { invoicesPage, messagePage } from "./pages.ts";
import { cursorAt, query, readCursor, wholeNumber } from "./parameters.ts";
import { type SignedIn, unauthenticated } from "./signed-in.ts";

const PAGE_ROWS = 20;
const API_ROWS_DEFAULT = 50;
const API_ROWS_MAX = 100;

export function addInvoiceRoutes(
  app: FastifyInstance,
  signedIn: SignedIn,
  invoices: readonly Invoice[],
): void {
  app.get("/", (_request, reply) => reply.redirect("/invoices"));

  app.get("/invoices", async (request, reply) => {
    const user = signedIn(request);
    if (!user) return reply.redirect("/login");
    const pages = Math.max(1, Math.ceil(invoices.length / PAGE_ROWS));
    const page = wholeNumber(query(request, "page") ?? "1", 1, pages);
    reply.type("text/html; charset=utf-8");
    if (page === undefined)
      return reply
        .code(404)
        .send(String(await messagePage("Page not found", `There are pages 1 to ${pages}.`)));
    const rows = invoices.slice((page - 1) * PAGE_ROWS, page * PAGE_ROWS);
    const { session, account } = user;
    return reply.send(
      String(
        await invoicesPage({
          invoices: rows,
          page,
          pages,
          total: invoices.length,
          displayName: account.displayName,
          session,
        }),
      ),
    );
  });

  app.get("/invoices.csv", async (request, reply) => {
    if (!signedIn(request)) return reply.redirect("/login");
    reply.header("content-disposition", 'attachment; filename="invoices.csv"');
    return reply.type("text/csv; charset=utf-8").send(invoicesCsv(invoices));
  });

  app.get("/api/me", async (request, reply) => {
    const user = signedIn(request);
    if (!user) return unauthenticated(reply);
    return { username: user.account.username, name: user.account.displayName };
  });

  app.get("/api/invoices", async (request, reply) => {
    if (!signedIn(request)) return unauthenticated(reply);
    const answer = readInvoices(invoices, (name) => query(request, name));
    return "problem" in answer ? reply.code(400).send({ error: answer.problem }) : answer;
  });
}

type ApiAnswer =
  | { readonly items: readonly Invoice[]; readonly next: string | null }
  | { readonly problem: string };

/** `from` and `to` (both included) are due dates. `next` is the cursor of the following page, null at the end. */
function readInvoices(
  invoices: readonly Invoice[],
  parameter: (name: string) => string | undefined,
): ApiAnswer {
  const from = parameter("from") ?? "0000-01-01";
  const to = parameter("to") ?? "9999-12-31";
  for (const [name, date] of [
    ["from", from],
    ["to", to],
  ] as const) {
    if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return { problem: `${name} must be a date like 2025-01-31` };
  }
  const limit = wholeNumber(parameter("limit") ?? String(API_ROWS_DEFAULT), 1, API_ROWS_MAX);
  if (limit === undefined) return { problem: `limit must be a whole number from 1 to ${API_ROWS_MAX}` };
  const cursor = parameter("cursor");
  const start = cursor === undefined ? 0 : readCursor(cursor, invoices.length);
  if (start === undefined) return { problem: "cursor is not one that this API gave" };

  const items: Invoice[] = [];
  for (const [index, invoice] of invoices.entries()) {
    if (index < start || invoice.due_date < from || invoice.due_date > to) continue;
    if (items.length === limit) return { items, next: cursorAt(index) };
    items.push(invoice);
  }
  return { items, next: null };
}
