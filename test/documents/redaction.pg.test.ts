// What a target gives back of a login is replaced in what a run stores, and what is data stays.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blueprint, dataOf, openBench, type Bench, type EndedRun } from "./bench.ts";
import { until } from "../eventually.ts";

let bench: Bench;

const TOKEN = "TOK-abcdef0123456789";
const OPENED = "opened-by-the-login-77";
const TENANT = "tenant-4711-north";
const ROTATED = ["rotated-cookie-of-page-1", "rotated-cookie-of-page-2"];

/** Everything that a login of several steps can give. */
const STRATEGY = `
strategy: strat_portal
account: acme
hosts: ["{TARGET}"]
fields:
  - { key: username, type: text }
  - { key: word, type: password }
  - { key: totp, type: totp_secret, required: false }
login:
  type: http
  steps:
    - request: { method: POST, url: /login, form: { u: "{{ $credential.username }}", p: "{{ $credential.word }}" } }
      extract:
        tok: { json: token }
        opened: { json: "{ 'deep': [opened, number] }" }
        tenant: { json: tenant, secret: false }
        many: { json: many, required: false }
    - when: $exists($credential.totp)
      request: { method: POST, url: /code, text: "{{ $credential.totp.code }}" }
  session:
    headers:
      Authorization: "Token {{ $tok }}"
      X-Tenant: "{{ $tenant }}"
      X-Said: 'user={{ $credential.username }}; opened="{{ $opened.deep[0] }}", v=application/vnd.portal'`;

const NODES = (path: string): string => `
- { id: read, type: http, credential: it, request: { url: ${path} }, records: records }
- { id: out, type: output, refKey: out, from: read }`;
const SLOT = "credentials: { it: { strategy: strat_portal } }";

let codeSent = "";
/** What is different about the answer to a login. */
let loginMore: { readonly headers?: Record<string, string | string[]>; readonly json?: object } = {};

before(async () => {
  bench = await openBench([
    STRATEGY,
    blueprint("read", NODES("/read"), SLOT),
    blueprint(
      "pages",
      NODES("/pages").replace("records: records", "records: records, paginate: { cursor: next, param: at }"),
      SLOT,
    ),
  ]);
  bench.target.on("POST /login", () => ({
    headers: loginMore.headers ?? {},
    json: { token: TOKEN, opened: OPENED, number: 5_551_234_567, tenant: TENANT, ...loginMore.json },
  }));
  bench.target.on("POST /code", ({ body }) => {
    codeSent = body.toString();
    return { json: {} };
  });
  bench.target.on("GET /read", ({ headers }) => ({
    json: {
      records: [
        {
          authorization: headers.authorization,
          token: TOKEN,
          again: `${headers.authorization}`.slice(6),
          said: headers["x-said"],
          opened: `<input value="${OPENED}">`,
          number: 5551234567,
          longer: 95551234567,
          code: codeSent,
          codes: `code ${codeSent}.`,
          tenant: TENANT,
          owner: "amelia-the-user",
          format: "application/vnd.portal",
          records: "all records of today",
        },
      ],
    },
  }));
});
after(() => bench?.[Symbol.asyncDispose]());

async function runOf(
  blueprintKey: string,
  word: string,
  more: Record<string, string> = {},
): Promise<EndedRun> {
  const credential = await bench.connect("strat_portal", { username: "amelia-the-user", word, ...more });
  return await bench.run(blueprintKey, { credential_id: credential });
}

test("tokens, extracted values and one-time codes of a login are replaced; tenant, user name and data are not", async () => {
  loginMore = {};
  const run = await runOf("read", "correct-horse", { totp: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP" });
  assert.match(codeSent, /^\d{6}$/);
  const [data] = dataOf(run);
  const text = JSON.stringify(run.results);
  for (const secret of [TOKEN, OPENED, codeSent]) assert.ok(!text.includes(secret), `${secret}: ${text}`);
  assert.deepEqual(
    { ...data, authorization: "", said: "" },
    {
      authorization: "",
      token: "[REDACTED]",
      again: "[REDACTED]",
      said: "",
      opened: `<input value="[REDACTED]">`,
      number: "[REDACTED]",
      longer: 95551234567,
      code: "[REDACTED]",
      codes: "code [REDACTED].",
      tenant: TENANT,
      owner: "amelia-the-user",
      format: "application/vnd.portal",
      records: "all records of today",
    },
  );
});

test("cookies that a node's answers set are replaced, in the page that sets them and in later ones", async () => {
  loginMore = {};
  bench.target.on("GET /pages", ({ query }) => {
    const at = Number(query.get("at") ?? "0");
    return {
      headers: { "set-cookie": `sid=${ROTATED[at] ?? "none"}; Path=/` },
      json: {
        records: ROTATED.map((value) => ({ at, value: `csrf ${value}` })).slice(0, at + 1),
        next: at === 0 ? "1" : null,
      },
    };
  });
  const values = dataOf(await runOf("pages", "correct-horse")).map(({ at, value }) => [at, value]);
  assert.deepEqual(values, [
    [0, "csrf [REDACTED]"],
    [1, "csrf [REDACTED]"],
    [1, "csrf [REDACTED]"],
  ]);
});

test("a password that is an ordinary word and a key of the document: the key stays, the value does not", async () => {
  loginMore = {};
  const run = await runOf("read", "records");
  assert.equal(run.status.status, "completed", run.detail ?? "");
  const [data] = dataOf(run);
  assert.deepEqual([data.tenant, data.records], [TENANT, "all [REDACTED] of today"]);
});

test("a login that is given more cookies or values than are looked for fails, and says which limit", async () => {
  const cookies = Array.from(
    { length: 1_000 },
    (_each, index) => `c${index}=cookie-of-the-target-${index}; Path=/zz`,
  );
  loginMore = { headers: { "set-cookie": cookies } };
  const full = await runOf("read", "correct-horse");
  assert.deepEqual([full.status.status, full.kind], ["failed", "login"]);
  assert.match(full.detail ?? "", /127\.0\.0\.1 set more than 50 cookies/);

  loginMore = {
    json: { many: Array.from({ length: 600 }, (_each, index) => `value-of-the-target-${index}`) },
  };
  const many = await runOf("read", "correct-horse");
  assert.deepEqual([many.status.status, many.kind], ["failed", "login"]);
  assert.match(many.detail ?? "", /60\d values that are kept secret .*; 500 are possible/);
});

test("a run whose login fails has not ended before the answer to the login is on record", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  bench.target.on("POST /login", async () => {
    asked.resolve();
    await answer.promise;
    return { status: 403, text: "not today" };
  });
  const { db } = bench.installation.database;
  const credential_id = await bench.connect("strat_portal", { username: "amelia", word: "correct-horse" });
  const statusOf = async (id: string): Promise<string | undefined> =>
    (await db.query<{ status: string }>("select status from run where id = $1", [id]))[0]?.status;
  const { body } = await bench.trigger("read", { credential_id });
  await asked.promise;
  await db.transaction(async (tx) => {
    await tx.query("lock table run_step in share mode");
    answer.resolve();
    await until("the answer waits for the table", async () => {
      const waiting = await db.query(
        `select 1 from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like '%run_step%'`,
      );
      return waiting.length > 0 || (await statusOf(body.id)) === "failed";
    });
    assert.notEqual(await statusOf(body.id), "failed");
  });
  assert.equal((await bench.ended(body.id)).kind, "login");
  const steps = await db.query<{ log: Buffer }>("select log from run_step where run_id = $1", [body.id]);
  assert.equal(steps.length, 1);
  assert.match(String(steps[0]?.log), /not today/);
});
