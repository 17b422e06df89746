import type { Answer, Seen, Target } from "../documents/target.ts";

/** Only with a credential. */
const signedIn =
  (answer: (seen: Seen, before: number) => Answer) =>
  (seen: Seen, before: number): Answer =>
    seen.headers.authorization === undefined && seen.headers["x-api-key"] === undefined
      ? { status: 401, json: { error: "sign in" } }
      : answer(seen, before);

/** Pages by the address of the next one: docs/recipes/next-url.yaml. */
export function answerCustomers(target: Target): void {
  const customers = ["Ana", "Ben", "Cleo"].map((name, index) => ({ id: index + 1, name }));
  target.on(
    "GET /customers",
    signedIn(({ query }) => {
      const offset = Number(query.get("offset") ?? "0");
      const next =
        offset + 2 < customers.length ? `${target.url}/customers?limit=2&offset=${offset + 2}` : null;
      return { json: { count: customers.length, next, results: customers.slice(offset, offset + 2) } };
    }),
  );
}

/** What a GraphQL connection answers: docs/recipes/body-pages.yaml. */
export function issuesAfter(after: string | null | undefined): Answer {
  const issues = [1, 2, 3].map((number) => ({ id: `I-${number}`, title: `Issue ${number}` }));
  const begin = after === undefined || after === null ? 0 : Number(after);
  const nodes = issues.slice(begin, begin + 2);
  const pageInfo = { hasNextPage: begin + 2 < issues.length, endCursor: String(begin + nodes.length) };
  return { json: { data: { issues: { nodes, pageInfo } } } };
}

/** An export that is done at the third look: docs/recipes/async-export.yaml. */
export function answerExports(target: Target): void {
  target.on(
    "POST /exports",
    signedIn(() => ({ status: 202, json: { id: "e1", state: "queued" } })),
  );
  let looks = 0;
  target.on(
    "GET /exports/e1",
    signedIn(() => ({ json: { id: "e1", state: ++looks % 3 === 0 ? "done" : "running" } })),
  );
  target.on(
    "GET /exports/e1/file",
    signedIn(() => ({ headers: { "content-type": "text/csv" }, text: "article,sold\nLamp,3\nCable,12\n" })),
  );
}

/** Invoices and their files: docs/recipes/file-per-record.yaml. */
export function answerInvoiceFiles(target: Target): void {
  const invoices = ["R-1", "R-2", "R-3"].map((number, index) => ({
    number,
    status: index === 1 ? "paid" : "open",
  }));
  target.on(
    "GET /invoices",
    signedIn(() => ({ json: { invoices } })),
  );
  for (const { number } of invoices)
    target.on(
      `GET /invoices/${number}.pdf`,
      signedIn(() => ({
        headers: { "content-type": "application/pdf" },
        bytes: Buffer.from(`%PDF-1.4\n% ${number}\n%%EOF\n`),
      })),
    );
}

/** A folder of WebDAV: docs/recipes/webdav.yaml. */
export function answerFolder(target: Target): void {
  const response = (href: string, etag: string, bytes: string): string =>
    `<D:response><D:href>${href}</D:href><D:propstat><D:prop><D:getetag>"${etag}"</D:getetag>${bytes}</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>`;
  target.on(
    "PROPFIND /files/",
    signedIn(({ headers }) => ({
      status: 207,
      headers: { "content-type": "application/xml; charset=utf-8" },
      text: `<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus xmlns:D="DAV:">${[
        response("/files/", "f0", ""),
        ...(headers.depth === "1"
          ? [
              response("/files/plan.txt", "f1", "<D:getcontentlength>120</D:getcontentlength>"),
              response("/files/sum.csv", "f2", "<D:getcontentlength>48</D:getcontentlength>"),
            ]
          : []),
      ].join("")}</D:multistatus>`,
    })),
  );
}
