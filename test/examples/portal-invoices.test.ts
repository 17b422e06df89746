import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { load } from "cheerio";
import { parse } from "csv-parse/sync";
import {
  generateInvoices,
  type Invoice,
  INVOICE_COLUMNS,
  invoicesCsv,
} from "../../examples/portal/invoices.ts";
import { openPortal, signedInVisitor, type Visitor } from "./portal-visitor.ts";

interface ApiPage {
  readonly items: readonly Invoice[];
  readonly next: string | null;
}

async function apiPages(visitor: Visitor, query = ""): Promise<ApiPage[]> {
  const pages: ApiPage[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    assert.ok(pages.length < 100, "the pages end");
    const response = await visitor.get(`/api/invoices?cursor=${encodeURIComponent(cursor)}${query}`);
    assert.equal(response.status, 200);
    const page = (await response.json()) as ApiPage;
    pages.push(page);
    cursor = page.next;
  }
  return pages;
}

test("the cursor pages hold all 240 invoices once, in order", async (t) => {
  const { url } = await openPortal(t);
  const visitor = await signedInVisitor(url);
  const pages = await apiPages(visitor);
  assert.deepEqual(
    pages.map((page) => page.items.length),
    [50, 50, 50, 50, 40],
  );
  const items = pages.flatMap((page) => page.items);
  assert.deepEqual(items, generateInvoices());
  assert.equal(items.length, 240);
  assert.deepEqual(
    (await apiPages(visitor, "&limit=7")).flatMap((page) => page.items),
    items,
  );
  assert.equal(
    (await apiPages(visitor, "&limit=100&from=2019-01-01&to=2026-12-31")).flatMap((page) => page.items)
      .length,
    240,
  );
});

test("from and to are due dates, both included; bad parameters are named", async (t) => {
  const { url } = await openPortal(t);
  const visitor = await signedInVisitor(url);
  const all = generateInvoices();
  const [first, last] = [all[30]?.due_date, all[60]?.due_date];
  assert.ok(first && last);
  const items = (await apiPages(visitor, `&limit=4&from=${first}&to=${last}`)).flatMap((page) => page.items);
  assert.deepEqual(
    items,
    all.filter((one) => one.due_date >= first && one.due_date <= last),
  );
  assert.ok(items.length >= 31);
  for (const [name, value] of [
    ["from", "yesterday"],
    ["to", "2025-1-1"],
    ["limit", "0"],
    ["limit", "101"],
    ["cursor", "7"],
    ["cursor", "YXQ6MjQw"],
  ]) {
    const answer = await visitor.get(`/api/invoices?${name}=${value}`);
    assert.equal(answer.status, 400, `${name}=${value}`);
    assert.match(await answer.text(), new RegExp(`"${name} `));
  }
});

test("exactly three invoices break a rule, for every seed: negative total, no number, due before 2020", () => {
  for (const seed of [1, 7, 20_250_101, 4_294_967_295]) {
    const invoices = generateInvoices(seed);
    assert.equal(invoices.length, 240);
    const broken = invoices.map((one) =>
      [Number(one.total) < 0, one.number === "", one.due_date < "2020-01-01"].map(Number).join(""),
    );
    assert.deepEqual(broken.filter((flags) => flags !== "000").sort(), ["001", "010", "100"]);
    for (const one of invoices) {
      assert.match(one.total, /^-?\d+\.\d\d$/);
      assert.match(one.due_date, /^(2019|2025|2026)-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])$/);
    }
    const numbers = invoices.map((one) => one.number);
    assert.equal(new Set(numbers).size, 240, "no number comes twice");
  }
});

test("the same seed gives the same invoices, another seed gives others", () => {
  assert.deepEqual(generateInvoices(7), generateInvoices(7));
  assert.notDeepEqual(generateInvoices(7), generateInvoices(8));
  // Written down once, so that an edit of the generator that changes everybody's demo data is seen.
  assert.deepEqual(generateInvoices()[0], {
    number: "INV-2025-0001",
    supplier: "Lumen Electrical",
    due_date: "2025-01-01",
    currency: "USD",
    total: "1335.44",
    status: "paid",
    purchase_order: "PO-95459",
  });
  assert.equal(
    createHash("sha256").update(invoicesCsv(generateInvoices())).digest("hex"),
    "e15e8bdf7eb55827e4536f9d68f03529986ef1469f556ee61534095096301654",
  );
});

test("the CSV download says the same as the API", async (t) => {
  const { url } = await openPortal(t);
  const visitor = await signedInVisitor(url);
  const response = await visitor.get("/invoices.csv");
  assert.match(response.headers.get("content-type") ?? "", /^text\/csv/);
  assert.match(response.headers.get("content-disposition") ?? "", /^attachment/);
  const text = await response.text();
  assert.equal(text.split("\r\n", 1)[0], INVOICE_COLUMNS.join(","));
  const rows: unknown = parse(text, { columns: true });
  assert.deepEqual(
    rows,
    (await apiPages(visitor)).flatMap((page) => page.items),
  );
});

test("the HTML table says the same as the API over all its pages, with names escaped", async (t) => {
  const { url } = await openPortal(t);
  const visitor = await signedInVisitor(url);
  const rows: Invoice[] = [];
  let path: string | undefined = "/invoices";
  let pages = 0;
  while (path !== undefined) {
    const markup = await (await visitor.get(path)).text();
    const $ = load(markup);
    assert.equal($("script, style, [style]").length, 0);
    assert.ok(!markup.includes("<Office>"));
    for (const element of $("table.invoices tbody tr").toArray()) {
      const cell = (selector: string) => $(element).find(selector).text();
      rows.push({
        number: cell("td.number"),
        supplier: cell("td.supplier"),
        due_date: $(element).find("td.due time").attr("datetime") ?? "none",
        currency: cell("td.currency"),
        total: $(element).find("td.total data").attr("value") ?? "none",
        status: cell("td.status") as Invoice["status"],
        purchase_order: cell("td.purchase-order"),
      });
    }
    pages += 1;
    path = $("a[rel=next]").attr("href");
    assert.ok(pages <= 12);
  }
  assert.equal(pages, 12);
  assert.deepEqual(rows, generateInvoices());
  for (const page of ["0", "13", "x", "-1"])
    assert.equal((await visitor.get(`/invoices?page=${page}`)).status, 404, page);
});
