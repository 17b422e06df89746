// Three examples with planned keys (`fixtures/page-3`): what is not built of the account is refused by name and place;
// without it they apply, and run against a portal that behaves as they expect.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import { TOTP } from "otpauth";
import { parseDocument } from "yaml";
import { decideReview } from "#actions/reviews/decide-review.ts";
import { eventually } from "../eventually.ts";
import { dataOf, openBench, type Bench, type EndedRun } from "./bench.ts";
import { decisionServices, reviewer } from "./review-stage.ts";
import { to, type Seen, type Target } from "./target.ts";

const example = (name: string): string =>
  readFileSync(new URL(`fixtures/page-3/${name}.yaml`, import.meta.url), "utf8");

const SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const INVOICES = [
  { number: "INV-1", total: "120.50", due_date: "2026-01-31", supplier: "Bolts" },
  { number: "INV-2", total: "-3", due_date: "2026-02-28" },
  { number: "INV-3", total: "80", due_date: "2019-12-31" },
  { number: "INV-4", total: 12, due_date: "2026-03-31" },
  { number: "INV-5", total: "7e1", due_date: "2020-01-01" },
];

/** The documents with what is not built and what is only dots taken out, and with a portal that can be reached. */
function builtExamples(): readonly string[] {
  const account = parseDocument(example("account"));
  assert.ok(account.delete("webhooks"));
  for (const key of ["logo_url", "support_url"]) assert.ok(account.deleteIn(["branding", key]), key);
  return [
    String(account),
    example("strategy").replace("https://portal.acme.example", "{TARGET}"),
    example("blueprint"),
  ];
}

let bench: Bench;

before(async () => {
  const [account, ...rest] = builtExamples();
  bench = await openBench(rest, account);
});
after(() => bench?.[Symbol.asyncDispose]());
beforeEach(() => openPortal(bench.target));

interface Visitor {
  csrf: string;
  stage: "nobody" | "code" | "in";
}

/** The portal of the examples: a form with a CSRF token, a one-time code for `otto`, and an API behind both. */
function openPortal(target: Target): void {
  const visitors = new Map<string, Visitor>();
  const visitor = ({ headers }: Seen) => visitors.get(/sid=(\w+)/.exec(headers.cookie ?? "")?.[1] ?? "");
  target.on("GET /login", () => {
    const [sid, csrf] = [randomBytes(8).toString("hex"), randomBytes(8).toString("hex")];
    visitors.set(sid, { csrf, stage: "nobody" });
    return {
      headers: { "set-cookie": `sid=${sid}; HttpOnly; Path=/` },
      html: `<form><input type=hidden name=_csrf value="${csrf}"></form>`,
    };
  });
  target.on("POST /login", (seen) => {
    const form = new URLSearchParams(seen.body);
    const who = visitor(seen);
    if (!who || form.get("_csrf") !== who.csrf) return { status: 403, html: "forged" };
    if (form.get("password") !== "open, sesame & co") return { html: "Wrong username or password" };
    who.stage = form.get("username") === "otto" ? "code" : "in";
    return to(who.stage === "code" ? "/login/otp" : "/");
  });
  target.on("POST /login/otp", (seen) => {
    const who = visitor(seen);
    const code = new URLSearchParams(seen.body).get("code") ?? "";
    if (who?.stage !== "code" || new TOTP({ secret: SECRET }).validate({ token: code, window: 1 }) === null)
      return { html: "Wrong code" };
    who.stage = "in";
    return to("/");
  });
  const onlyIn = (answer: (seen: Seen) => object) => (seen: Seen) =>
    visitor(seen)?.stage === "in" ? { json: answer(seen) } : { status: 401 };
  target.on(
    "GET /api/me",
    onlyIn(() => ({ name: "me" })),
  );
  target.on(
    "GET /api/invoices",
    onlyIn(({ query }) => {
      const rows = INVOICES.filter(({ due_date }) => due_date >= (query.get("from") ?? ""));
      const start = Number(query.get("cursor") ?? 0);
      return { items: rows.slice(start, start + 2), next: start + 2 < rows.length ? start + 2 : null };
    }),
  );
}

const BODY = { period: { from: "2000-01-01" }, purchase_order: "PO-77" };
const connectAs = async (username: string, more: Readonly<Record<string, string>> = {}) =>
  await bench.connect("strat_acme_portal", { username, password: "open, sesame & co", ...more });

/** The gate asks, because two invoices are wrong; the reviewer lets them through as they are. */
async function runThroughGate(body: object): Promise<EndedRun> {
  const accepted = await bench.trigger("supplier-invoices", body);
  assert.equal(accepted.status, 202, accepted.text);
  const runId: string = accepted.body.id;
  const { db } = bench.installation.database;
  const ended = bench.ended(runId);
  const review = await eventually("the gate asks", async () => {
    const rows = await db.query<{ id: string }>(
      `select id from review where run_id = $1 and convert_from(title, 'UTF8') = 'Some invoices look wrong'`,
      [runId],
    );
    return rows[0]?.id;
  });
  const { body: parked } = await bench.caller.get(`/blueprint-runs/${runId}/status`);
  assert.deepEqual([parked.status, parked.progress_step], ["running", "awaiting_review"]);
  const changes = { edits: [], exclusions: [] };
  await decideReview(
    decisionServices(bench.installation),
    review,
    { verdict: "approve", changes },
    reviewer("ana"),
  );
  return await ended;
}

test("exactly what is not built, and dots for an address, are refused, by name and place", async () => {
  const of = async (name: string) => await bench.refusals(example(name));
  assert.deepEqual(await of("account"), [
    "9:35 branding.logo_url is not an image; embed the image itself: `data:image/png;base64,…` with the output of `base64 -w0 logo.png` (PNG, JPEG or WebP, at most 32 KiB)",
    "9:76 branding.support_url must be a web address that begins with https://, or mailto: and an email address",
    "11:63 webhooks[0].secret_env `secret_env` is not built yet; `latchkey webhooks rotate` makes the secret and shows it once",
  ]);
  assert.deepEqual(await of("strategy"), []);
  assert.deepEqual(await of("blueprint"), []);
  // The strategy as it stands was applied, with the portal that is nowhere: the one of this test again.
  await bench.apply(builtExamples()[1] ?? "");
});

test("with a one-time code: form with CSRF, code, check, three pages, records split by isValid", async () => {
  const id = await connectAs("otto", { totp: SECRET });
  const run = await runThroughGate({ ...BODY, credential_id: id });
  assert.equal(run.status.status, "completed", String(run.detail));
  assert.deepEqual(Object.keys(run.results).sort(), ["invoices.invalid", "invoices.valid"]);
  assert.deepEqual(dataOf(run, "invoices.valid"), [
    { number: "INV-1", total: 120.5, due: "2026-01-31" },
    { number: "INV-4", total: 12, due: "2026-03-31" },
    { number: "INV-5", total: 70, due: "2020-01-01" },
  ]);
  const invalid = run.results["invoices.invalid"]?.records ?? [];
  assert.deepEqual(
    invalid.map(({ data, isValid }) => [data.number, isValid]),
    [
      ["INV-2", false],
      ["INV-3", false],
    ],
  );
  assert.deepEqual(
    invalid.map(({ errors }) => errors.map(({ field, code }) => [field, code])),
    [[["total", "minimum"]], [["due", "rule"]]],
  );
  assert.equal(invalid[1]?.errors[0]?.message, "Due date is too old");
  assert.deepEqual(run.answer.executionMetadata.metadata, { purchase_order: "PO-77" });
  const pages = bench.target.seen("GET /api/invoices").slice(-3);
  assert.deepEqual(
    pages.map(({ query }) => [query.get("from"), query.get("cursor")]),
    [
      ["2000-01-01", null],
      ["2000-01-01", "2"],
      ["2000-01-01", "4"],
    ],
  );
});

test("without one: the step of the code is left out; the period is the caller's; a price list may come as a file", async () => {
  const id = await connectAs("ana");
  const before = bench.target.seen("POST /login/otp").length;
  const form = new FormData();
  form.append("credential_id", id);
  form.append("purchase_order", "PO-78");
  form.append("period", '{"from":"2026-03-01"}');
  form.append("price_list", new File(["%PDF"], "prices.pdf"));
  const run = await bench.run("supplier-invoices", form);
  assert.deepEqual(dataOf(run, "invoices.valid"), [{ number: "INV-4", total: 12, due: "2026-03-31" }]);
  assert.equal(run.results["invoices.invalid"]?.totalRecords, 0);
  assert.equal(bench.target.seen("POST /login/otp").length, before);
});

test("cache: 15m: a second run asks /api/me and does not log in again, until the portal has forgotten the session", async () => {
  const id = await connectAs("ana");
  await runThroughGate({ ...BODY, credential_id: id });
  const logins = bench.target.seen("POST /login").length;
  const run = await runThroughGate({ ...BODY, credential_ids: [id] });
  assert.equal(dataOf(run, "invoices.valid").length, 3);
  assert.equal(bench.target.seen("POST /login").length, logins);
  openPortal(bench.target);
  assert.equal((await runThroughGate({ ...BODY, credential_id: id })).status.status, "completed");
  assert.equal(bench.target.seen("POST /login").length, logins + 1);
});

test("a wrong password and a missing code fail at authenticating, with the same sentence for the caller", async () => {
  const cases: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
    [
      { username: "ana", password: "wrong" },
      /^strat_acme_portal: login step 2 \(POST \/login\): the response contains `Wrong username`$/,
    ],
    [
      { username: "otto", password: "open, sesame & co" },
      /^strat_acme_portal: login check \(GET \/api\/me\): expected status 200, got 401$/,
    ],
  ];
  for (const [values, story] of cases) {
    const run = await bench.run("supplier-invoices", {
      ...BODY,
      credential_id: await bench.connect("strat_acme_portal", values),
    });
    assert.match(String(run.detail), story);
    assert.ok(
      run.steps.every((step) => ["queued/queued", "queued/authenticating", "failed/failed"].includes(step)),
      run.steps.join(),
    );
    assert.deepEqual(run.status.error, {
      code: "execution_failed",
      message: "The run did not complete. The operator's dashboard shows why.",
    });
  }
});

test("the trigger's own rules: 400 without the purchase order, 422 without a period's beginning or a credential", async () => {
  const id = await connectAs("ana");
  const { purchase_order: _order, ...without } = BODY;
  const missing = await bench.trigger("supplier-invoices", { ...without, credential_id: id });
  assert.deepEqual([missing.status, missing.body.error.details[0].field], [400, "purchase_order"]);
  const period = await bench.trigger("supplier-invoices", {
    ...BODY,
    period: { to: "x" },
    credential_id: id,
  });
  assert.deepEqual([period.status, period.body.error.details[0].field], [422, "period.from"]);
  const credential = await bench.trigger("supplier-invoices", BODY);
  assert.deepEqual([credential.status, credential.body.error.details[0].field], [422, "credential_id"]);
});
