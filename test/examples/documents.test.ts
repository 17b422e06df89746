import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { load } from "cheerio";
import { parse as parseCsv } from "csv-parse/sync";
import jsonata from "jsonata";
import { readSheet } from "read-excel-file/node";
import { parse as parseYaml } from "yaml";
import { validateConfig } from "#actions/config/apply-config.ts";
import { PORTAL_ACCOUNTS } from "../../examples/portal/accounts.ts";
import { generateInvoices } from "../../examples/portal/invoices.ts";
import { openPortal, signedInVisitor, visit } from "./portal-visitor.ts";

const FOLDER = fileURLToPath(new URL("../../examples/", import.meta.url));
const PORTAL_ORIGIN = "http://127.0.0.1:4600";
const LEDGER_ORIGIN = "http://127.0.0.1:4601";

const files = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".yaml"),
);
const source = (name: string) => readFileSync(FOLDER + name, "utf8");

/** The documents are read loosely: their shape is checked by `latchkey validate`, their meaning against the portal here. */
type Loose = { readonly [key: string]: Loose } & { readonly length?: number };
const read = (name: string) => parseYaml(source(name)) as Loose;
const at = (value: Loose, ...path: (string | number)[]): Loose => {
  let found: Loose | undefined = value;
  for (const key of path) found = found?.[key];
  assert.notEqual(found, undefined, path.join("."));
  return found as Loose;
};
function node(blueprint: Loose, id: string): Loose {
  const found = (blueprint["nodes"] as unknown as Loose[]).find((one) => String(one["id"]) === id);
  assert.ok(found, id);
  return found;
}

test("every document says first what it is, and belongs to the example account", () => {
  assert.ok(files.length >= 4);
  for (const name of files) {
    const document = read(name);
    assert.ok(["account", "strategy", "blueprint"].includes(Object.keys(document)[0] ?? ""), name);
    assert.equal(document["account"], "acme", name);
  }
});

test("the targets' origins stand in the strategies and nowhere else, so that a demo on other ports replaces them there", () => {
  for (const name of files) {
    const origins = new Set(source(name).match(/http:\/\/127\.0\.0\.1:46\d\d/g));
    if (!name.startsWith("strategies/")) assert.deepEqual([...origins], [], name);
    else assert.deepEqual([...origins], [name.includes("ledger") ? LEDGER_ORIGIN : PORTAL_ORIGIN], name);
  }
  assert.deepEqual(read("strategies/northwind-portal.yaml")["hosts"], [PORTAL_ORIGIN]);
});

test("all documents together are in order", () => {
  const sources = files.map((name) => ({ file: name, text: source(name) }));
  const { checked, problems } = validateConfig(sources);
  assert.deepEqual(problems, []);
  assert.deepEqual(
    checked.flatMap(({ warnings }) => warnings),
    [],
  );
  assert.equal(checked.length, files.length);
});

test("the price list is the same as CSV and as XLSX", async () => {
  const csv = parseCsv(source("files/price-list.csv"), { columns: true });
  const [head = [], ...rows] = await readSheet(readFileSync(`${FOLDER}files/price-list.xlsx`), "Prices");
  const sheet = rows.map((row) => Object.fromEntries(row.map((value, at) => [String(head[at]), value])));
  assert.deepEqual(
    sheet.map((row) => ({ ...row, quantity: String(row["quantity"]) })),
    (csv as Record<string, string>[]).map((row) => ({ ...row, unit_price: Number(row["unit_price"]) })),
  );
});

test("the strategy's extracts find the tokens of both forms", async (t) => {
  const portal = await openPortal(t);
  const steps = at(read("strategies/northwind-portal.yaml"), "login", "steps");
  const visitor = visit(portal.url);
  const extract = async (step: number, name: string) => {
    const markup = await (await visitor.get(String(at(steps, step, "request", "url")))).text();
    const { css, attr } = at(steps, step, "extract", name);
    return load(markup)(String(css)).first().attr(String(attr)) ?? "";
  };
  const totpUser = PORTAL_ACCOUNTS.find((one) => one.totpSecret !== null);
  assert.ok(totpUser);
  const { username, password } = totpUser;
  assert.deepEqual(Object.keys(at(steps, 1, "request", "form")), ["username", "password", "_csrf"]);
  const first = await visitor.post("/login", { username, password, _csrf: await extract(0, "csrf") });
  assert.ok((at(steps, 1, "expect", "status") as unknown as number[]).includes(first.status));
  assert.match(await extract(2, "otp_csrf"), /./);
});

test("supplier-invoices: its fields, schema and rule leave 237 of 240 invoices valid", async () => {
  const blueprint = read("blueprints/supplier-invoices.yaml");
  const checked = node(blueprint, "checked");
  const valid = new Ajv2020().compile(at(checked, "schema"));
  const assertion = jsonata(String(at(checked, "rules", 0, "assert")));
  const fields = Object.entries(at(node(blueprint, "lines"), "fields")).map(
    ([name, text]) => [name, jsonata(String(text))] as const,
  );
  const invalid: string[] = [];
  for (const invoice of generateInvoices()) {
    const data: Record<string, unknown> = {};
    for (const [name, expression] of fields) data[name] = await expression.evaluate(invoice);
    assert.equal(typeof data["total"], "number");
    if (!valid(data))
      invalid.push(valid.errors?.map((error) => error.instancePath + " " + error.keyword).join() ?? "");
    else if ((await assertion.evaluate(data)) !== true)
      invalid.push(String(at(checked, "rules", 0, "field")));
  }
  assert.deepEqual(invalid.sort(), ["/number minLength", "/total minimum", "due"]);
});

test("invoice-table: its rows and columns read a whole page, and its filter keeps the open invoices", async (t) => {
  const portal = await openPortal(t);
  const visitor = await signedInVisitor(portal.url);
  const blueprint = read("blueprints/invoice-table.yaml");
  const { rows, columns } = node(blueprint, "rows");
  const $ = load(await (await visitor.get("/invoices?page=1")).text());
  const found = $(String(rows))
    .toArray()
    .map((row) =>
      Object.fromEntries(
        Object.entries(columns ?? {}).map(([name, selector]) => {
          const [css, attr] = String(selector).split("@");
          const cell = $(row).find(css ?? "");
          return [name, attr === undefined ? cell.text() : cell.attr(attr)];
        }),
      ),
    );
  assert.deepEqual(
    found,
    generateInvoices()
      .slice(0, 20)
      .map(({ due_date, ...rest }) => ({ ...rest, due: due_date })),
  );

  const where = jsonata(String(node(blueprint, "open")["where"]));
  const open = await Promise.all(generateInvoices().map((one) => where.evaluate(one)));
  assert.equal(
    open.filter((kept) => kept === true).length,
    generateInvoices().filter((one) => one.status === "open").length,
  );
});
