// docs/strategies.md#login: basic, bearer, headers and none, each with every built field type.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";

let bench: Bench;

const KEY_NODES = `
- { id: read, type: http, credential: it, request: { url: /api/read }, records: items }
- { id: out, type: output, refKey: out, from: read }`;

const strategy = (id: string, fields: string, login: string) => `
strategy: ${id}
account: acme
hosts: ["{TARGET}"]
fields:
${fields}
login: ${login}`;

const slot = (id: string) => `credentials: { it: { strategy: ${id} } }`;

const LOGINS: readonly (readonly [name: string, document: string])[] = [
  [
    "basic",
    strategy(
      "strat_basic",
      "  - { key: mail, type: email }\n  - { key: word, type: password }",
      "{ type: basic, username: mail, password: word }",
    ),
  ],
  [
    "basic_half",
    strategy(
      "strat_basic_half",
      "  - { key: key, type: text, secret: true }\n  - { key: nothing, type: password, required: false }",
      "{ type: basic, username: key, password: nothing }",
    ),
  ],
  [
    "bearer",
    strategy(
      "strat_bearer",
      "  - { key: token, type: text, secret: true }",
      "{ type: bearer, token: token }",
    ),
  ],
  [
    "headers",
    strategy(
      "strat_headers",
      "  - { key: key, type: password }\n  - { key: shop, type: text }\n  - { key: totp, type: totp_secret }\n  - { key: note, type: text, required: false }",
      `{ type: headers, headers: { X-Api-Key: "{{ $credential.key }}", X-Shop: "shop/{{ $uppercase($credential.shop) }}", X-Code: "{{ $credential.totp.code }}", X-Note: "{{ $credential.note }}" } }`,
    ),
  ],
  ["none", strategy("strat_none", "  - { key: key, type: password }", "{ type: none }")],
];

const DOCUMENTS = [
  ...LOGINS.flatMap(([name, document]) => [document, blueprint(name, KEY_NODES, slot(`strat_${name}`))]),
  // Nothing to send to: the fields are only stored.
  "strategy: strat_stored\naccount: acme\nfields: [{ key: note, type: text }]\nlogin: { type: none }",
  blueprint(
    "stored",
    "- { id: word, type: input, refKey: word }\n- { id: list, type: parse, from: word, format: json }\n- { id: out, type: output, refKey: out, from: list }",
    slot("strat_stored"),
  ),
];

before(async () => {
  bench = await openBench(DOCUMENTS);
  bench.target.on("GET /api/read", ({ headers }) => ({
    json: { items: [{ authorization: headers.authorization ?? null, shop: headers["x-shop"] ?? null }] },
  }));
});
after(() => bench?.[Symbol.asyncDispose]());

const lastRead = () => bench.target.seen("GET /api/read").at(-1)?.headers ?? {};

test("basic sends the user name and the password as UTF-8, to the byte", async () => {
  const credential = await bench.connect("strat_basic", { mail: "  ana@example.com ", word: "pä ss:wörd " });
  const run = await bench.run("basic", { credential_id: credential });
  assert.equal(run.status.status, "completed", String(run.detail));
  const sent = String(lastRead().authorization);
  // An email address loses the blanks around it, a password none.
  assert.equal(
    Buffer.from(sent.replace("Basic ", ""), "base64").toString("utf8"),
    "ana@example.com:pä ss:wörd ",
  );
});

test("what a login sends is redacted where the target echoes it into the results", async () => {
  const credential = await bench.connect("strat_basic", { mail: "bob@example.com", word: "hunter2-hunter2" });
  const run = await bench.run("basic", { credential_id: credential });
  assert.equal(dataOf(run)[0].authorization, "Basic [REDACTED]");
});

test("basic works with one of its two fields left empty", async () => {
  const credential = await bench.connect("strat_basic_half", { key: "sk_123456" });
  await bench.run("basic_half", { credential_id: credential });
  assert.equal(Buffer.from(String(lastRead().authorization).slice(6), "base64").toString(), "sk_123456:");
});

test("a user name with a colon, which HTTP Basic can't carry, fails the login and is not quoted", async () => {
  const credential = await bench.connect("strat_basic_half", { key: "with:colon" });
  const run = await bench.run("basic_half", { credential_id: credential });
  assert.deepEqual(run.steps.at(-1), "failed/failed");
  assert.deepEqual(run.status.error, {
    code: "execution_failed",
    message: "The run did not complete. The operator's dashboard shows why.",
  });
  assert.equal(run.status.started_at, null);
  assert.match(String(run.detail), /^strat_basic_half: login \(basic\): the field key contains a colon/);
  assert.ok(!run.detail?.includes("with:colon"));
});

test("bearer sends the token, without the line break that came with pasting it", async () => {
  const credential = await bench.connect("strat_bearer", { token: " tok-1234567\n" });
  const run = await bench.run("bearer", { credential_id: credential });
  assert.equal(lastRead().authorization, "Bearer tok-1234567");
  assert.equal(dataOf(run)[0].authorization, "Bearer [REDACTED]");
});

test("headers are templates over every field, a one-time code included; an empty optional field leaves its header out", async () => {
  const credential = await bench.connect("strat_headers", {
    key: "k-987654",
    shop: "north",
    totp: "otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&digits=8&period=60&algorithm=SHA256",
  });
  const run = await bench.run("headers", { credential_id: credential });
  assert.equal(run.status.status, "completed", String(run.detail));
  const headers = lastRead();
  assert.equal(headers["x-api-key"], "k-987654");
  assert.equal(headers["x-shop"], "shop/NORTH");
  assert.match(String(headers["x-code"]), /^\d{8}$/);
  assert.equal(headers["x-note"], undefined);
});

test("none sends nothing, with hosts and without", async () => {
  const credential = await bench.connect("strat_none", { key: "k-987654" });
  assert.deepEqual(dataOf(await bench.run("none", { credential_id: credential }))[0], {
    authorization: null,
    shop: null,
  });
  const stored = await bench.connect("strat_stored", { note: "n" });
  assert.deepEqual(dataOf(await bench.run("stored", { credential_id: stored, word: [{ a: 1 }] })), [
    { a: 1 },
  ]);
});

test("no secret of any login stands in the log or in a column of the run's tables", async () => {
  const secrets = ["hunter2-hunter2", "tok-1234567", "k-987654", "sk_123456", "GEZDGNBVGY3TQOJQ"];
  for (const secret of secrets) assert.ok(!bench.installation.logs().includes(secret), secret);
  const { db } = bench.installation.database;
  for (const table of [
    "run",
    "run_step",
    "run_input",
    "run_result",
    "credential",
    "credential_session",
    "login_session",
  ]) {
    const rows = await db.query<{ text: string }>(`select ${table}::text as text from ${table}`);
    const all = rows.map(({ text }) => text).join("\n");
    for (const secret of secrets) {
      assert.ok(!all.includes(secret), `${secret} in ${table}`);
      assert.ok(!all.includes(Buffer.from(secret).toString("hex")), `${secret} in ${table}, as bytes`);
    }
  }
});
