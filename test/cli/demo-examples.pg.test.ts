// The examples as people play them: one demo with all of them, looked at from outside: what it prints, and what the target saw.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { must } from "#lib/assert.ts";
import { MISMATCHES, TRADE_COUNT } from "../../examples/portal/trade.ts";
import { BACKWARDS, METER_COUNT } from "../../examples/portal/meters.ts";
import { SHIPMENT_COUNT } from "../../examples/portal/shipments.ts";
import { TRANSACTION_COUNT } from "../../examples/portal/bank.ts";
import {
  assertNothingLeft,
  BY_SCRIPT,
  pressCtrlC,
  NO_BROWSER,
  startDemo,
  type Demo,
} from "./demo-process.ts";
import { openProgram } from "../browser/program.ts";
import { testInAll } from "../tiers.ts";
import { latchkeyProcess, ROOT } from "./program.ts";

interface Target {
  readonly answered: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly ledger_answered: Readonly<Record<string, number>>;
  readonly orders: readonly { readonly article: string; readonly quantity: number }[];
  readonly duplicates_refused: number;
  readonly pickups: readonly { readonly shipment: string }[];
  readonly documents: readonly { readonly file_name: string; readonly sha256: string }[];
  readonly tokens: Readonly<Record<string, number>>;
  readonly sign_ins: Readonly<Record<string, { readonly wrong_tries: number; readonly locked: boolean }>>;
}

// A test each, and no suite around them: each waits for its own part, however slow the machine.
let demo: Demo;
before(() => (demo = startDemo([...BY_SCRIPT, "all"])));

/** What was printed of an example, once the next one (or the end) has begun. */
const played = async (name: string, next: string): Promise<string> => {
  await demo.line(new RegExp(`^${next}`));
  return must(demo.stdout().split(`\nExample ${name}:`)[1]?.split(`\n${next}`)[0], demo.stdout());
};
const target = async (): Promise<Target> => {
  const url = must(
    /^Northwind Supplier Portal, .*: (http:\/\/127\.0\.0\.1:\d+)$/m.exec(demo.stdout())?.[1],
    demo.stdout(),
  );
  return (await (await fetch(`${url}/__control`)).json()) as Target;
};

test("invoices: one sign-in with a one-time code, 240 records by JSON, the CSV and a page of the table", async () => {
  const text = await played("invoices", "Example purchase-orders");
  assert.match(text, /Of 240 records, 3 invalid:/);
  assert.match(text, /From the CSV download \d+ open invoices, from page 3 of the table 20\./);
  const { answered } = await target();
  assert.deepEqual(answered["POST /login/otp"], { 302: 1 });
  assert.deepEqual(answered["GET /api/invoices"], { 200: 5 });
  assert.deepEqual(answered["GET /invoices.csv"], { 200: 1 });
  assert.deepEqual(answered["GET /invoices"], { 200: 1 });
});

test("purchase-orders: what the review left is ordered once each, also the order whose answer was lost; the file is handed in", async () => {
  const text = await played("purchase-orders", "Example bank-transactions");
  assert.match(text, /^Approved, with 1 records edited and 1 excluded; run_\w+ continues\.$/m);
  assert.match(text, /^ +\d+\.\d\d s {2}cancelled \/ cancelled$/m);
  assert.equal([...text.matchAll(/ {2}found {2,}ORD-/g)].length, 1, text);
  const { answered, orders, duplicates_refused, documents } = await target();
  assert.deepEqual(
    orders.map(({ article, quantity }) => [article, quantity]),
    [
      ["AB-101", 40],
      ["BH-220", 6],
      ["CF-310", 12],
      ["EP-404", 250],
      ["FB-512", 8],
      ["JK-815", 24],
    ],
  );
  assert.equal(duplicates_refused, 0);
  assert.deepEqual(answered["POST /api/orders"], { 201: 6 });
  assert.deepEqual(answered["GET /api/orders"], { 200: 1 }, "the one look-up");
  const bytes = readFileSync(join(ROOT, "examples/files/price-list.csv"));
  assert.deepEqual(
    documents.map(({ file_name, sha256 }) => [file_name, sha256]),
    [["price-list.csv", createHash("sha256").update(bytes).digest("hex")]],
  );
  assert.deepEqual(answered["POST /documents"], { 303: 1 });
});

test("bank-transactions: one consent, access tokens that end in mid-run, refresh tokens used once each, every page once", async () => {
  const text = await played("bank-transactions", "Example three-way-match");
  assert.equal(
    [...text.matchAll(/ (\d+) in, (\d+) out; /g)].every(
      ([, incoming, outgoing]) => Number(incoming) + Number(outgoing) === TRANSACTION_COUNT,
    ),
    true,
  );
  assert.match(text, /counterparty: No counterparty/);
  const { answered, tokens } = await target();
  assert.deepEqual(tokens, { codes: 1, exchanged: 1, refreshed: 5, forgotten: 5, reused: 0 });
  assert.deepEqual(answered["GET /api/bank/transactions"], { 200: 26, 401: 5 });
  assert.deepEqual(answered["POST /oauth/token"], { 200: 6 });
});

test("three-way-match: two systems, and the four invoices that don't match, each with its reason", async () => {
  const text = await played("three-way-match", "Example meter-readings");
  assert.match(text, new RegExp(`^${TRADE_COUNT - 4} invoices agree .*; 4 do not:$`, "m"));
  const numbered = (index: number): string => `RE-${String(index + 1).padStart(4, "0")}`;
  for (const [invoice, why] of [
    [MISMATCHES.dearer, "billed_price: Billed at more than was ordered"],
    [MISMATCHES.moreThanArrived, "billed_quantity: More was billed than has arrived"],
    [MISMATCHES.unknownOrder, "order: There is no such purchase order; order: Nothing has arrived for it"],
    [MISMATCHES.notArrived, "order: Nothing has arrived for it"],
  ] as const) {
    const row = text.split("\n").find((line) => line.startsWith(numbered(invoice)));
    assert.ok(row?.endsWith(`  ${why}`), `${numbered(invoice)}: ${row}`);
  }
  const { answered, ledger_answered } = await target();
  assert.deepEqual(answered["GET /api/purchase-orders"], { 200: 3 });
  // The login's check, three pages of invoices, the empty one behind them, and the receipts.
  assert.deepEqual(ledger_answered, { 200: 6 });
});

test("meter-readings: two wrong passwords and no third; every reading in spite of 429, 503 and a slow answer", async () => {
  const text = await played("meter-readings", "To look at");
  assert.match(text, /^Run 4 failed; the portal has seen 2 wrong passwords\.$/m);
  assert.match(text, /^cred_\w+ .* Locked until .*, 2 rejected logins$/m);
  assert.match(text, new RegExp(`^All ${METER_COUNT * 6} readings are there; 1 can't be right:$`, "m"));
  const meter = `M-${String(BACKWARDS.meter + 1).padStart(2, "0")}`;
  assert.match(text, new RegExp(`^${meter} .* used: Lower than the reading before$`, "m"));
  const { answered, sign_ins } = await target();
  assert.deepEqual(sign_ins["demo-meters"], { wrong_tries: 2, locked: false });
  const readings = answered["GET /api/meters/:meter/readings"] ?? {};
  assert.deepEqual([readings["429"], readings["503"]], [2, 4]);
  assert.ok((readings["200"] ?? 0) >= METER_COUNT, JSON.stringify(readings));
});

test("browser: without a Chromium the others are played, and it is said why this one is not", async () => {
  await demo.line(/^To look at/);
  assert.doesNotMatch(demo.stdout(), /^Example browser/m);
  assert.match(
    demo.stderr(),
    /^Without the example browser, which needs a browser\. LATCHKEY_BROWSER names \/nowhere\/chromium, which/m,
  );
  const alone = await latchkeyProcess(["demo", "browser"], { LATCHKEY_BROWSER: NO_BROWSER });
  assert.deepEqual([alone.code, alone.stdout], [1, ""], "nothing is started");
  assert.match(
    alone.stderr,
    /^This example needs a browser\. .* or unset it to use an installed Chromium\.$/m,
  );
});

test("Ctrl-C ends it with exit code 0, and leaves nothing", async () => {
  await demo.line(/Everything stays up until Ctrl-C/);
  pressCtrlC(demo);
  const { code, stderr } = await demo.ended;
  assert.equal(code, 0, stderr);
  await assertNothingLeft(demo);
});

test("demo --list names the examples; an unknown name is refused with the nearest, before anything is started", async () => {
  const listed = await latchkeyProcess(["demo", "--list"], {});
  assert.deepEqual(
    [
      listed.code,
      ...listed.stdout
        .trim()
        .split("\n")
        .map((line) => line.split(" ")[0]),
    ],
    [
      0,
      "NAME",
      "invoices",
      "purchase-orders",
      "bank-transactions",
      "three-way-match",
      "meter-readings",
      "browser",
    ],
  );
  const unknown = await latchkeyProcess(["demo", "purchase-order"], {});
  assert.deepEqual([unknown.code, unknown.stdout], [2, ""]);
  assert.equal(unknown.stderr, 'There is no example "purchase-order"; did you mean `purchase-orders`?\n');
});

testInAll(
  "the tutorial's second half, on the same pages (examples/tutorial)",
  "browser: one sign-in by browser, tables and the export by pages, details by requests, two pickups booked once each",
  {},
  async (context) => {
    const program = await openProgram();
    context.after(() => program.remove());
    const shown = startDemo([...BY_SCRIPT, "browser"], program.path);
    await shown.line(/Everything stays up until Ctrl-C/);
    const url = must(/^Northwind Supplier Portal, .*: (\S+)$/m.exec(shown.stdout())?.[1], shown.stdout());
    const { answered, pickups } = (await (await fetch(`${url}/__control`)).json()) as Target;
    assert.deepEqual(
      pickups.map(({ shipment }) => shipment),
      ["SH-0004", "SH-0008"],
    );
    assert.deepEqual(answered["POST /shipments/api/session"], { 201: 1 });
    assert.deepEqual(answered["GET /shipments/api/items/:number"], { 200: SHIPMENT_COUNT / 4 });
    assert.deepEqual(answered["GET /shipments/api/export"], { 200: 1 });
    assert.match(shown.stdout(), /^SH-0004 +Bristol, Dock 4 +2026-01-08 +\d+ +\d+$/m);
    assert.match(shown.stdout(), /^The answer to the booking of SH-0008 was lost: a look-up/m);
    pressCtrlC(shown);
    const { code, stderr } = await shown.ended;
    assert.equal(code, 0, stderr);
    await assertNothingLeft(shown);
  },
);
