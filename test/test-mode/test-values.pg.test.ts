// docs/test-mode.md: what each test value does to a run, with an account's own strategy and Blueprint, and no request to its own hosts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, openCaller, type Caller } from "../caller.ts";
import { openBench, type Bench } from "../documents/bench.ts";
import { PATIENCE_MS, until } from "../eventually.ts";
import { testInAll } from "../tiers.ts";

const STRATEGY = `strategy: strat_portal
account: acme
hosts: ["{TARGET}"]
fields:
  - { key: username, type: text }
  - { key: password, type: password, pattern: "[0-9]{8}" }
login:
  type: http
  steps: [{ request: { method: POST, url: /login, form: { username: "{{ $credential.username }}" } } }]
  lockout: off`;

const BLUEPRINT = `blueprint: invoices
account: acme
credentials: { portal: { strategy: strat_portal } }
metadata: [{ name: order, required: true }]
nodes:
  - { id: period, type: input, refKey: period }
  - { id: read, type: http, credential: portal, request: { url: /invoices }, records: items }
  - { id: out, type: output, refKey: invoices, handles: { valid: { from: read, where: $isValid }, invalid: { from: read, where: $not($isValid) } } }`;

/** A login with a code, and one at the target's own pages: in test mode both are forms. */
const OTHERS = [
  `strategy: strat_codes
account: acme
hosts: ["{TARGET}"]
fields: [{ key: username, type: text }, { key: totp, type: totp_secret }]
login: { type: basic, username: username, password: username }`,
  `strategy: strat_oauth
account: acme
hosts: ["{TARGET}"]
login: { type: oauth2, token_url: "{TARGET}/token", authorization_url: "{TARGET}/authorize", client_id: a }`,
  ...["codes", "oauth"].map(
    (name) => `blueprint: ${name}
account: acme
credentials: { it: { strategy: strat_${name} } }
nodes:
  - { id: read, type: http, credential: it, request: { url: /invoices }, records: items }
  - { id: out, type: output, refKey: out, from: read }`,
  ),
];

let bench: Bench;
let tester: Caller;
let credential: string;

before(async () => {
  bench = await openBench([STRATEGY, BLUEPRINT, ...OTHERS]);
  tester = openCaller(bench.service.url, await bench.installation.createKey("acme", { isTest: true }));
  credential = await connect(tester, "strat_portal", { username: "ada", password: "any" });
  await bench.installation.database.db.query(
    "insert into webhook_endpoint (id, account_id, url, events) values ('we_operators', null, 'https://127.0.0.1:9/', '{*}')",
  );
});
after(async () => {
  // Nothing of a test's run has ever reached the account's own target.
  const reached = bench.target.all.map(({ path }) => path);
  await bench?.[Symbol.asyncDispose]();
  assert.deepEqual(reached, []);
});

interface Ended {
  readonly status: any;
  readonly results: any;
  readonly kind: string | null;
  readonly detail: string | null;
}

async function run(body: object, credentialId = credential): Promise<Ended> {
  const accepted = await tester.post("/blueprints/invoices/trigger", {
    credential_id: credentialId,
    order: "1",
    ...body,
  });
  assert.equal(accepted.status, 202, accepted.text);
  const { id } = accepted.body;
  const { body: status } = await tester.waitForRun(id, PATIENCE_MS);
  const [row] = await bench.installation.database.db.query<{ detail: string | null; kind: string | null }>(
    "select error_detail as detail, error_kind as kind from run where id = $1",
    [id],
  );
  const results =
    status.status === "completed"
      ? (await tester.get(`/blueprint-runs/${id}/results?deliveryMethod=direct`)).body
      : null;
  return { status, results, kind: row?.kind ?? null, detail: row?.detail ?? null };
}

/** How many valid and invalid records. */
const countsOf = ({ results }: Ended) => [
  results.results["invoices.valid"].totalRecords,
  results.results["invoices.invalid"].totalRecords,
];

test("without a test value a login succeeds, and the results have the Blueprint's own keys", async () => {
  const ended = await run({});
  assert.deepEqual([ended.status.status, ended.detail], ["completed", null]);
  assert.deepEqual(countsOf(ended), [3, 0]);
  assert.equal(ended.results.executionMetadata.metadata.order, "1");
});

test("`test_records` are the records that the target has", async () => {
  const ended = await run({ test_records: [{ total: 1 }, { total: 2, test_invalid: true }] });
  assert.deepEqual(countsOf(ended), [1, 1]);
  assert.deepEqual(ended.results.results["invoices.valid"].records[0].data, { total: 1 });
});

for (const [value, counts] of [
  ["no_records", [0, 0]],
  ["records_500", [500, 0]],
  ["invalid_records", [2, 1]],
  ["write", [3, 0]],
] as const)
  test(`${value}: the run completes`, async () => {
    assert.deepEqual(countsOf(await run({ test_outcome: value })), counts);
  });

test("large_results: they are delivered by URL, although `direct` was asked for", async () => {
  const { results } = await run({ test_outcome: "large_results" });
  assert.equal(results.dataDeliveryMethod, "presigned_url");
});

const FAILURES: readonly (readonly [value: string, detail: RegExp])[] = [
  ["throttled", /^Node test_read: .*429/],
  ["server_error", /^Node test_read: .*500/],
  ["target_crash", /^Node test_read: .*the connection to target\.latchkey\.test failed/],
  ["page_changed", /^Node test_read: .*JSON/],
  ["write_refused", /^Node test_write: POST \/writes returned 409/],
];

for (const [value, detail] of FAILURES)
  test(`${value}: the run fails`, async () => {
    const ended = await run({ test_outcome: value });
    assert.deepEqual([ended.status.status, ended.status.error.code], ["failed", "execution_failed"]);
    assert.match(ended.detail ?? "", detail);
    assert.equal(ended.kind, "target");
  });

const LOGIN_FAILURES: readonly (readonly [value: string, detail: RegExp])[] = [
  ["wrong_password", /expected status 200, got 401$/],
  ["account_locked", /expected status 200, got 423$/],
  ["code_required", /login check \(GET \/me\): expected status 200, got 401$/],
  ["login_throttled", /expected status 200, got 429$/],
  ["login_crash", /the connection to target\.latchkey\.test failed/],
];

for (const [value, detail] of LOGIN_FAILURES)
  test(`${value}: the login fails`, async () => {
    const own = await connect(tester, "strat_portal", { username: value, password: "any" });
    const ended = await run({}, own);
    assert.deepEqual([ended.status.status, ended.kind], ["failed", "login"]);
    assert.match(ended.detail ?? "", detail);
  });

testInAll(
  "ten seconds; instead all other values",
  "slow and login_slow: what takes five seconds takes that long",
  {},
  async () => {
    const own = await connect(tester, "strat_portal", { username: "login_slow", password: "any" });
    const sinceMs = performance.now();
    assert.deepEqual(countsOf(await run({ test_outcome: "slow" }, own)), [3, 0]);
    assert.ok(performance.now() - sinceMs >= 10_000);
  },
);

/** Triggers, and waits until the run has this step. */
async function reach(value: string, step: string): Promise<string> {
  const { body } = await tester.post("/blueprints/invoices/trigger", {
    credential_id: credential,
    order: "1",
    test_outcome: value,
  });
  const stepOf = async () => (await tester.get(`/blueprint-runs/${body.id}/status`)).body.progress_step;
  await until(`the run is ${step}`, async () => (await stepOf()) === step);
  return body.id;
}

test("review: the run waits for a person", async () => {
  const id = await reach("review", "awaiting_review");
  assert.equal((await tester.post(`/blueprint-runs/${id}/cancel`)).status, 200);
});

test("write_uncertain: the run waits for an operator's decision on the write", async () => {
  const id = await reach("write_uncertain", "awaiting_review");
  const [write] = await bench.installation.database.db.query<{ status: string }>(
    "select status from run_write where run_id = $1",
    [id],
  );
  assert.equal(write?.status, "in_doubt");
});

test("operators are not told of what waits in test mode", async () => {
  const { db } = bench.installation.database;
  const waiting = await db.query("select from run_write where status = 'in_doubt'");
  assert.equal(waiting.length, 1);
  assert.deepEqual(await db.query("select type from webhook_event where account_id is null"), []);
});

for (const [blueprint, values] of [
  ["codes", { username: "code_required", totp: "JBSWY3DPEHPK3PXP" }],
  ["oauth", { test_value: "ada" }],
] as const)
  test(`a strategy for ${blueprint} has a form in test mode, and its login succeeds`, async () => {
    const own = await connect(tester, `strat_${blueprint}`, values);
    const { body } = await tester.post(`/blueprints/${blueprint}/trigger`, { credential_id: own });
    const { body: status } = await tester.waitForRun(body.id, PATIENCE_MS);
    assert.equal(status.status, "completed");
  });

test("a field of the form decides about runs, too", async () => {
  const own = await connect(tester, "strat_portal", { username: "records_500", password: "any" });
  assert.deepEqual(countsOf(await run({}, own)), [500, 0]);
});
