import { openTarget, to, type Answer, type Seen, type Target } from "../documents/target.ts";
import {
  answerCustomers,
  answerExports,
  answerFolder,
  answerInvoiceFiles,
  issuesAfter,
} from "./recipe-answers.ts";

/** What the targets of docs/recipes answer: all of them in one, by path. */
export async function openRecipeTarget(): Promise<Target> {
  const target = await openTarget();
  answerOrders(target);
  answerTickets(target);
  answerAccounts(target);
  answerFiles(target);
  answerInvoices(target);
  answerCustomers(target);
  answerExports(target);
  answerInvoiceFiles(target);
  answerFolder(target);
  target.on("GET /me", ({ headers }) =>
    headers.authorization === undefined ? { status: 401 } : { json: { name: "ana" } },
  );
  return target;
}

/** What a recipe is run with, by the name of its file; `replace` puts the recording's host in the place of the target's. */
export const RECIPE_RUNS: Readonly<Record<string, RecipeRun>> = {
  "link-header": { credential: { token: "a-token-of-a-test" }, slot: "api" },
  graphql: { credential: { key: "a-key-of-a-test" }, slot: "api" },
  "hidden-values": {
    credential: { user: "ana", pass: "a-password-of-a-test" },
    slot: "portal",
    options: [
      "--allow-writes",
      "--input",
      `tickets=${JSON.stringify([
        { title: "Printer", text: "It is on fire." },
        { title: "Coffee", text: "There is none." },
      ])}`,
    ],
  },
  "two-levels": { credential: { user: "ana", pass: "a-password-of-a-test" }, slot: "bank" },
  "next-url": { credential: { token: "a-token-of-a-test" }, slot: "api" },
  "body-pages": { credential: { key: "a-key-of-a-test" }, slot: "api" },
  "async-export": { credential: { token: "a-token-of-a-test" }, slot: "api" },
  "file-per-record": { credential: { token: "a-token-of-a-test" }, slot: "api" },
  webdav: { credential: { user: "ana", pass: "a-password-of-a-test" }, slot: "dav" },
  oauth: { environment: { CREDENTIAL_DRIVE_ACCESS_TOKEN: "an-access-token-of-a-test" } },
  soap: {
    credential: { user: "ana", pass: "a-password-of-a-test" },
    slot: "erp",
    options: ["--input", "since=2026-01-01"],
  },
};

export interface RecipeRun {
  readonly credential?: Readonly<Record<string, string>>;
  readonly slot?: string;
  readonly options?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const signedIn =
  (answer: (seen: Seen) => Answer) =>
  (seen: Seen): Answer =>
    seen.headers.authorization === undefined && seen.headers["x-api-key"] === undefined
      ? { status: 401, json: { error: "sign in" } }
      : answer(seen);

function answerOrders(target: Target): void {
  const orders = [1, 2, 3, 4, 5].map((id) => ({
    id,
    customer: { name: `Customer ${id}` },
    total: (id * 12.5).toFixed(2),
    created_at: `2026-01-0${id}T08:00:00Z`,
  }));
  target.on(
    "GET /orders",
    signedIn(({ query }) => {
      const page = Number(query.get("page") ?? "1");
      const next =
        page * 2 < orders.length ? { link: `</orders?per_page=2&page=${page + 1}>; rel="next"` } : {};
      return { headers: next, json: orders.slice((page - 1) * 2, page * 2) };
    }),
  );
}

function answerTickets(target: Target): void {
  target.on(
    "POST /graphql",
    signedIn(({ body }) => {
      const { query, variables } = JSON.parse(body);
      if (query.includes("viewer")) return { json: { data: { viewer: { id: "v1" } } } };
      if (query.includes("issues")) return issuesAfter(variables.after);
      if (variables.team !== "support")
        return { json: { errors: [{ message: "no such team" }], data: null } };
      return {
        json: {
          data: {
            tickets: [
              { id: "T-1", title: "Printer", author: { name: "Ana" } },
              { id: "T-2", title: "Coffee", author: { name: "Ben" } },
            ],
          },
        },
      };
    }),
  );
  const token = "3f9c1d7ab2e84c05";
  const page = (form: string): Answer => ({ html: `<!doctype html><title>Tickets</title>${form}` });
  target.on(
    "GET /login",
    page(
      `<form id=login method=post action=/session><input type=hidden name=csrf value=${token}><input name=user><input type=password name=pass></form>`,
    ),
  );
  target.on("POST /session", ({ body }) =>
    new URLSearchParams(body).get("csrf") === token
      ? {
          ...to("/account"),
          headers: { location: "/account", "set-cookie": "sid=a-session-of-the-test; Path=/" },
        }
      : { status: 403 },
  );
  const cookie = (answer: (seen: Seen, before: number) => Answer) => (seen: Seen, before: number) =>
    seen.headers.cookie?.includes("sid=") === true ? answer(seen, before) : to("/login");
  target.on(
    "GET /account",
    cookie(() => ({ html: "<title>Account</title>ana" })),
  );
  target.on(
    "GET /tickets/new",
    cookie(() =>
      page(
        `<form id=ticket method=post action=/tickets><input type=hidden name=csrf value=${token}><input type=hidden name=revision value=7><input name=title><textarea name=text></textarea></form>`,
      ),
    ),
  );
  target.on(
    "POST /tickets",
    cookie(({ body }, before) => {
      const form = new URLSearchParams(body);
      if (form.get("csrf") !== token || form.get("revision") !== "7")
        return page("<form id=ticket><p class=error>The form is too old.</p></form>");
      return to(`/tickets/${before + 1}`, 303);
    }),
  );
}

function answerAccounts(target: Target): void {
  const accounts = ["a1", "a2", "a3"].map((id, index) => ({
    id,
    iban: `DE0${index}120000000000000000`,
    status: index === 1 ? "closed" : "open",
  }));
  target.on(
    "GET /accounts",
    signedIn(() => ({ json: { accounts } })),
  );
  for (const { id } of accounts)
    target.on(
      `GET /accounts/${id}/transactions`,
      signedIn(() => ({
        json: {
          account_id: id,
          transactions: id === "a3" ? [] : [1, 2].map((n) => ({ id: `${id}-${n}`, amount: `${n * 10}.00` })),
        },
      })),
    );
}

function answerFiles(target: Target): void {
  target.on(
    "GET /v1/files",
    signedIn(({ query }) => {
      const isFirst = query.get("page_token") === null;
      const names = isFirst ? ["plan.txt", "sum.csv"] : ["note.md"];
      return {
        json: {
          files: names.map((name, at) => ({
            name,
            size: String(100 * (at + 1)),
            modified_time: "2026-02-01T00:00:00Z",
          })),
          ...(isFirst && { next_page_token: "p2" }),
        },
      };
    }),
  );
}

function answerInvoices(target: Target): void {
  const xml = (body: string): Answer => ({
    headers: { "content-type": "text/xml; charset=utf-8" },
    text: `<?xml version="1.0" encoding="utf-8"?>
<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/" xmlns:i="urn:example:invoices"><soap:Body>${body}</soap:Body></soap:Envelope>`,
  });
  target.on(
    "GET /services/Invoices",
    signedIn(() => xml("")),
  );
  target.on(
    "POST /services/Invoices",
    signedIn(({ body }) =>
      body.includes("<i:Since>2026-01-01</i:Since>")
        ? xml(
            `<i:ListResponse><i:Invoice number="R-1"><i:Supplier>Müller &amp; Söhne</i:Supplier><i:Total currency="EUR">19.90</i:Total></i:Invoice>` +
              `<i:Invoice number="R-2"><i:Supplier>Lumen</i:Supplier><i:Total currency="USD">7.00</i:Total></i:Invoice></i:ListResponse>`,
          )
        : xml("<soap:Fault><faultstring>no</faultstring></soap:Fault>"),
    ),
  );
}
