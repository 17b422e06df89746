// docs/strategies.md#fields: the field types select, checkbox, textarea, url, headers and file, from the form to what the target gets.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { submitHostedForm } from "../caller.ts";
import { blueprint, openBench, type Bench } from "./bench.ts";

let bench: Bench;

const NODES =
  "- { id: read, type: http, credential: it, request: { url: /api/read }, records: $ }\n- { id: out, type: output, refKey: out, from: read }";

const STRATEGY = `
strategy: strat_kinds
account: acme
hosts: ["{TARGET}"]
fields:
  - { key: region, label: Region, type: select, options: [eu, { value: us, label: United <States> }], placeholder: Choose one }
  - { key: shop, label: Shop address, type: url }
  - { key: notes, label: Notes, type: textarea, required: false }
  - { key: terms, label: I may do this, type: checkbox }
  - { key: digest, label: Send a digest, type: checkbox, required: false }
  - { key: extra, label: Extra headers, type: headers, required: false }
  - { key: pem, label: Key file, type: file, required: false }
login:
  type: http
  steps:
    - request:
        method: POST
        url: /login
        json: { region: "{{ $credential.region }}", shop: "{{ $credential.shop }}", notes: "{{ $credential.notes }}", terms: "{{ $credential.terms }}", digest: "{{ $credential.digest }}", pem: "{{ $credential.pem }}", tenant: "{{ $credential.extra.\`X-Tenant\` }}" }`;

const HEADERS = `
strategy: strat_added
account: acme
hosts: ["{TARGET}"]
fields: [{ key: extra, label: Headers, type: headers }]
login: { type: headers, from: extra, headers: { X-Own: fixed } }`;

before(async () => {
  bench = await openBench([
    STRATEGY,
    blueprint("kinds", NODES, "credentials: { it: { strategy: strat_kinds } }"),
    HEADERS,
    blueprint("added", NODES, "credentials: { it: { strategy: strat_added } }"),
  ]);
  bench.target.on("POST /login", {});
  bench.target.on("GET /api/read", ({ headers }) => ({ json: [{ echo: headers["x-api-key"] ?? null }] }));
});
after(() => bench?.[Symbol.asyncDispose]());

const openSession = async (strategy = "strat_kinds"): Promise<string> =>
  (await bench.caller.post("/credential-sessions", { strategy_id: strategy })).body.hosted_url;
const GOOD = { region: "us", shop: " https://shop.example/a ", terms: "true" };

test("every kind of field reaches the login: what was left empty does not exist there", async () => {
  const id = await bench.connect("strat_kinds", {
    ...GOOD,
    notes: " one\r\ntwo ",
    "extra.1.name": "X-Tenant",
    "extra.1.value": "t-1",
    pem: "-----BEGIN X-----\r\nTm9ib2R5\r\n",
  });
  const run = await bench.run("kinds", { credential_id: id });
  assert.equal(run.status.status, "completed", String(run.detail));
  assert.deepEqual(JSON.parse(bench.target.seen("POST /login").at(-1)?.body ?? ""), {
    region: "us",
    shop: "https://shop.example/a",
    notes: " one\ntwo ",
    terms: true,
    pem: "-----BEGIN X-----\r\nTm9ib2R5\r\n",
    tenant: "t-1",
  });
});

test("a form with a file is multipart, and no other form is taken for it", async () => {
  const url = await openSession();
  const page = await (await fetch(url)).text();
  assert.match(page, /<form[^>]*\senctype="multipart\/form-data"/);
  const csrf = /name="_csrf" value="([^"]*)"/.exec(page)?.[1] ?? "";
  const urlencoded = await fetch(url, {
    method: "POST",
    body: new URLSearchParams({ _csrf: csrf, ...GOOD }),
  });
  assert.equal(urlencoded.status, 415);
  const headers = { "content-type": "multipart/form-data; boundary=x" };
  for (const body of ["", "--x\r\n", '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1'])
    assert.equal((await fetch(url, { method: "POST", headers, body })).status, 415, body);
  const plain = await fetch(await openSession("strat_added"));
  assert.match(await plain.text(), /enctype="application\/x-www-form-urlencoded"/);
});

const REFUSED: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
  [{ ...GOOD, region: "asia" }, /Region must be one of the choices/],
  [{ ...GOOD, region: "" }, /Region is required/],
  [{ ...GOOD, shop: "shop.example" }, /Shop address must be a web address/],
  [{ region: "us", shop: GOOD.shop }, /Tick the box to confirm: I may do this/],
  [{ ...GOOD, pem: "a\0b" }, /Key file is not a text file/],
  [{ ...GOOD, pem: "x".repeat(66_000) }, /Key file is too large/],
  [{ ...GOOD, "extra.2.value": "QXZ1" }, /Extra headers: a header has a value but no name/],
];

test("each kind refuses what it should, and keeps what was typed but no secret", async () => {
  const url = await openSession();
  for (const [values, says] of REFUSED) {
    const answer = await submitHostedForm(url, values);
    const page = await answer.text();
    assert.equal(answer.status, 422, String(says));
    assert.match(page, says);
    assert.ok(!page.includes("QXZ1"));
    if (values["region"] === "us") assert.match(page, /<option value="us"\s+selected/);
    if (values["terms"] !== undefined) assert.match(page, /name="terms"[^>]* checked/);
  }
  assert.equal((await submitHostedForm(url, { ...GOOD, pem: "x".repeat(200_000) })).status, 413);
  assert.equal((await submitHostedForm(url, GOOD)).status, 200);
});

test("headers that the end user adds go along with every request, and are redacted where the target echoes them", async () => {
  const id = await bench.connect("strat_added", {
    "extra.1.name": "X-Api-Key",
    "extra.1.value": "key-of-ana",
    "extra.9.name": "x-own",
    "extra.9.value": "stolen",
  });
  const run = await bench.run("added", { credential_id: id });
  const seen = bench.target.seen("GET /api/read").at(-1)?.headers ?? {};
  assert.deepEqual([seen["x-api-key"], seen["x-own"]], ["key-of-ana", "fixed"]);
  assert.equal(run.results["out"]?.records[0]?.data.echo, "[REDACTED]");
  assert.ok(!bench.installation.logs().includes("key-of-ana"));
});
