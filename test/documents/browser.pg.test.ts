// docs/browser.md, the whole way: documents, the hosted form, a login by browser, records by requests and by pages.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { EMAIL, openPortal, PASSWORD, TOKEN } from "../browser/portal.ts";
import { openProgram } from "../browser/program.ts";
import { until } from "../eventually.ts";
import { dataOf, openBench, type Bench } from "./bench.ts";

const STRATEGY = `strategy: strat_portal
account: acme
hosts: ["{TARGET}"]
fields: [{ key: email, type: email }, { key: password, type: password }, { key: totp, type: totp_secret, required: false }]
login:
  type: browser
  steps:
    - goto: /login
    - dismiss: { role: button, name: Accept all }
    - fill: { label: Email, with: "{{ $credential.email }}" }
    - fill: { label: Password, with: "{{ $credential.password }}" }
    - click: { role: button, name: Sign in }
    - when: { visible: { label: One-time code } }
      steps:
        - fill: { label: One-time code, with: "{{ $credential.totp.code }}" }
        - click: { role: button, name: Verify }
    - expect: { visible: { role: heading, name: Dashboard }, rejected: { text: Wrong email or password } }
  session: { headers: { Authorization: "Bearer {{ $storage.local.\`auth-tokens\`.access }}" } }
  check: { request: { url: /api/me } }
  cache: 8h
`;

const blueprint = (name: string, steps: string) => `blueprint: ${name}
account: acme
credentials: { portal: { strategy: strat_portal } }
nodes:
${steps}
  - { id: out, type: output, refKey: out, from: read }
`;

const BY_REQUESTS = blueprint(
  "requests",
  "  - { id: read, type: http, credential: portal, request: { url: /api/items, query: { page: 0 } }, records: items, paginate: { cursor: next, param: page } }",
);
const BY_PAGES = blueprint(
  "pages",
  `  - id: read
    type: browser
    credential: portal
    steps:
      - goto: /invoices
      - repeat:
          steps:
            - extract: { rows: { css: "tbody tr" }, columns: { no: .no, total: .total, note: h1 } }
          while: { enabled: { role: button, name: Next } }
          next:
            - click: { role: button, name: Next }`,
);
const COVERED = blueprint(
  "covered",
  `  - id: read
    type: browser
    credential: portal
    steps:
      - goto: /covered
      - click: { role: button, name: Show }
      - extract: { fields: { shown: "#shown" } }`,
);
const CHANGED = blueprint(
  "changed",
  `  - id: read
    type: browser
    credential: portal
    retry: { attempts: 1 }
    steps:
      - goto: /invoices
      - click: { role: button, name: Nxet, exact: true }
        timeout: 300ms
      - extract: { fields: { title: h1 } }`,
);

const FLAKY = `blueprint: flaky
account: acme
hosts: ["{TARGET}"]
nodes:
  - id: read
    type: browser
    retry: { attempts: 2, initial: 1ms }
    steps:
      - goto: "{TARGET}/flaky"
      - extract: { fields: { title: h1 } }
  - { id: out, type: output, refKey: out, from: read }
`;

const FORM = `strategy: strat_form
account: acme
hosts: ["{TARGET}"]
fields: [{ key: password, type: password }]
login:
  type: http
  steps: [{ request: { method: POST, url: /form, form: { p: "{{ $credential.password }}" } }, expect: { text: Hello } }]
`;
const BY_COOKIE = `blueprint: cookie
account: acme
credentials: { portal: { strategy: strat_form } }
nodes:
  - id: read
    type: browser
    credential: portal
    steps:
      - goto: /cookie
      - extract: { fields: { title: h1, password: p } }
  - { id: out, type: output, refKey: out, from: read }
`;

const SHORT = STRATEGY.replace("strat_portal", "strat_short").replace(
  "  check: { request: { url: /api/me } }\n",
  '  expired: { url: "/login" }\n',
);
/** Nothing but a page shows whether the session is still good. */
const STEPPED = STRATEGY.replace("strat_portal", "strat_stepped").replace(
  "  check: { request: { url: /api/me } }\n",
  `  expired: { url: "/login" }
  check: { steps: [{ goto: /invoices }, { expect: { visible: { role: heading, name: Invoices } } }] }
`,
);
const BY_ONE_REQUEST = blueprint(
  "stepped",
  "  - { id: read, type: http, credential: portal, request: { url: /api/invoices }, records: items }",
).replace("strat_portal", "strat_stepped");

const SHORT_PAGES = BY_PAGES.replaceAll("strat_portal", "strat_short").replace("pages", "short");

let program: Awaited<ReturnType<typeof openProgram>>;
let bench: Bench;
let portal: ReturnType<typeof openPortal>;
let hasCode = false;

before(async () => {
  const reading = [BY_REQUESTS, BY_PAGES, SHORT_PAGES, BY_COOKIE, COVERED, BY_ONE_REQUEST];
  const documents = [STRATEGY, SHORT, FORM, STEPPED, ...reading, CHANGED, FLAKY];
  program = await openProgram();
  bench = await openBench(documents, undefined, { LATCHKEY_BROWSER: program.path });
  portal = openPortal(bench.target, { hasCode: () => hasCode });
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  program?.remove();
});

test("one login by browser: 10,000 records by requests, then rows by pages, from the cached session", async () => {
  const credential_id = await bench.connect("strat_portal", { email: EMAIL, password: PASSWORD });
  const first = await bench.run("requests", { credential_id });
  assert.equal(first.status.status, "completed", first.detail ?? "");
  assert.equal(first.results["out"]?.totalRecords, 10_000);
  const second = await bench.run("pages", { credential_id });
  assert.deepEqual(dataOf(second)[8], { no: "INV-33", total: "303.50", note: null });
  assert.equal(bench.target.seen("POST /session").length, 1);
  const { db } = bench.installation.database;
  const opened = await db.query<{ action: string }>(
    "select action from audit_entry where subject_id = $1 and run_id = $2 order by id",
    [credential_id, first.id],
  );
  assert.deepEqual(opened.map(({ action }) => action).slice(0, 2), ["credential.open", "credential.send"]);
  const kept = await db.query<{ text: string }>("select run_step::text as text from run_step");
  for (const { text } of kept) for (const secret of [PASSWORD, TOKEN]) assert.ok(!text.includes(secret));
});

test("a banner that the login dismisses is dismissed in a node, where it may appear first", async () => {
  const credential_id = await bench.connect("strat_portal", { email: EMAIL, password: PASSWORD });
  assert.deepEqual(dataOf(await bench.run("covered", { credential_id })), [{ shown: "shown" }]);
});

test("a password that is refused fails the login, and counts; a page that has changed is another failure", async () => {
  const credential_id = await bench.connect("strat_portal", { email: EMAIL, password: "wrong-canary-1" });
  const refused = await bench.run("pages", { credential_id });
  assert.deepEqual([refused.status.status, refused.kind], ["failed", "login"]);
  assert.match(
    refused.detail ?? "",
    /^strat_portal: login steps\[6\] \(expect heading "Dashboard" visible\): the target rejected the credential/,
  );
  assert.deepEqual(refused.status.error, {
    code: "execution_failed",
    message: "The run did not complete. The operator's dashboard shows why.",
  });
  const good = await bench.connect("strat_portal", { email: EMAIL, password: PASSWORD });
  const changed = await bench.run("changed", { credential_id: good });
  assert.equal(changed.kind, "page_changed");
  assert.match(
    changed.detail ?? "",
    /^Node read: steps\[1\] \(click button "Nxet"\): there is no button "Nxet"; there are: button "Next"/,
  );
  const [step] = await bench.installation.database.db.query<{ log: Buffer }>(
    "select log from run_step where run_id = $1",
    [changed.id],
  );
  assert.match(
    step?.log.toString() ?? "",
    /\{"message":"failed","code":"not_found","step":"steps\[1\]","attempt":1\}/,
  );
});

test("a page that says that the cached session has ended: the run logs in again, once, and reads everything", async () => {
  const credential_id = await bench.connect("strat_short", { email: EMAIL, password: PASSWORD });
  const before = bench.target.seen("POST /session").length;
  assert.equal(dataOf(await bench.run("short", { credential_id })).length, 9);
  portal.endSessions();
  const again = await bench.run("short", { credential_id });
  assert.equal(again.status.status, "completed", again.detail ?? "");
  assert.equal(dataOf(again).length, 9);
  assert.equal(bench.target.seen("POST /session").length, before + 2);
});

test("a check by steps opens a page with the cached session, and a session that has ended is replaced", async () => {
  const credential_id = await bench.connect("strat_stepped", { email: EMAIL, password: PASSWORD });
  const count = (path: string): number => bench.target.seen(path).length;
  const before = { logins: count("POST /session"), pages: count("GET /invoices") };
  const read = async () => {
    const run = await bench.run("stepped", { credential_id });
    assert.equal(run.status.status, "completed", run.detail ?? "");
    assert.equal(dataOf(run).length, 3);
    return [count("POST /session") - before.logins, count("GET /invoices") - before.pages];
  };
  // After the login it is looked at in the same browser.
  assert.deepEqual(await read(), [1, 1]);
  assert.deepEqual(await read(), [1, 2]);
  portal.endSessions();
  assert.deepEqual(await read(), [2, 4]);
});

test("a test login fills in the one-time code that the page asks for, and says each step", async () => {
  hasCode = true;
  const credential = await bench.connect("strat_portal", {
    email: EMAIL,
    password: PASSWORD,
    totp: "JBSWY3DPEHPK3PXP",
  });
  const told = await bench.installation.command("credentials", "test-login", credential, "--json");
  const { id } = JSON.parse(told.stdout) as { readonly id: string };
  const { db } = bench.installation.database;
  await until("the test login has ended", async () => {
    const [run] = await db.query<{ status: string }>("select status from run where id = $1", [id]);
    return run?.status === "completed";
  });
  hasCode = false;
  const steps = await db.query<{ name: string }>(
    "select node_id as name from run_step where run_id = $1 order by ended_at, started_at",
    [id],
  );
  assert.deepEqual(
    steps.map(({ name }) => name).filter((name) => name.includes("code") || name.includes("check")),
    [
      'login steps[5] (when label "One-time code" visible)',
      'login steps[5].steps[0] (fill label "One-time code")',
      "login check (GET /api/me)",
    ],
  );
});

test("a read without a credential that fails starts again with its first step, in a new browser", async () => {
  bench.target.on("GET /flaky", ({ headers }, before) => ({
    status: before === 0 ? 503 : 200,
    html: `<h1>${headers.cookie ?? "no cookie"}</h1>`,
    headers: { "set-cookie": "seen=yes" },
  }));
  const run = await bench.run("flaky");
  assert.equal(run.status.status, "completed", run.detail ?? "");
  assert.deepEqual(dataOf(run), [{ title: "no cookie" }]);
  assert.equal(bench.target.seen("GET /flaky").length, 2);
});

test("a browser starts with the cookies of an http login, and a secret that a page shows is redacted", async () => {
  bench.target.on("POST /form", {
    html: "Hello",
    headers: { "set-cookie": "sid=canary-form-55667788; Path=/" },
  });
  bench.target.on("GET /cookie", ({ headers }) => ({
    html: `<h1>${headers.cookie === "sid=canary-form-55667788" ? "logged in" : "not logged in"}</h1><p>${PASSWORD}</p>`,
  }));
  const run = await bench.run("cookie", {
    credential_id: await bench.connect("strat_form", { password: PASSWORD }),
  });
  assert.equal(run.status.status, "completed", run.detail ?? "");
  assert.deepEqual(dataOf(run), [{ title: "logged in", password: "[REDACTED]" }]);
});
