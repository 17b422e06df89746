// docs/strategies.md#fields: field types and their options, from the document through the hosted form to what the target gets.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Secret, TOTP } from "otpauth";
import { submitHostedForm } from "../caller.ts";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";

let bench: Bench;

const STRATEGY = `
strategy: strat_fields
account: acme
name: Fields <b>of</b> all types
description: Describes & explains
hosts: ["{TARGET}"]
fields:
  - { key: customer, label: Customer number, type: text, pattern: "[A-Z]{2}[0-9]+", min_length: 4, max_length: 6, placeholder: AB12, help: On <your> card, autocomplete: "off" }
  - { key: pin, type: text, secret: true, required: false, min_length: 6 }
  - { key: mail, label: Mail, type: email, required: false }
  - { key: word, label: Word, type: password, max_length: 20 }
  - { key: shown, label: Shown, type: password, required: false, secret: false }
  - { key: totp, label: Code secret, type: totp_secret, required: false }
login:
  type: http
  steps:
    - request:
        method: POST
        url: /login
        json: { customer: "{{ $credential.customer }}", pin: "{{ $credential.pin }}", mail: "{{ $credential.mail }}", word: "{{ $credential.word }}" }
    - { when: $exists($credential.totp), request: { method: POST, url: /code, text: "{{ $credential.totp.code }}" } }`;

before(async () => {
  bench = await openBench([
    STRATEGY,
    blueprint(
      "fields",
      "- { id: read, type: http, credential: it, request: { url: /api/read }, records: $ }\n- { id: out, type: output, refKey: out, from: read }",
      "credentials: { it: { strategy: strat_fields } }",
    ),
  ]);
  bench.target.on("POST /login", {});
  bench.target.on("POST /code", {});
  bench.target.on("GET /api/read", { json: [] });
});
after(() => bench?.[Symbol.asyncDispose]());

const GOOD = { customer: "AB123", word: "secret-word" };
const openSession = async () =>
  (await bench.caller.post("/credential-sessions", { strategy_id: "strat_fields" })).body;

test("the form shows the fields in the document's order, with their labels, help and kinds, escaped", async () => {
  const page = await (await fetch((await openSession()).hosted_url)).text();
  const names = [...page.matchAll(/name="([^"_][^"]*)"/g)]
    .map(([, name]) => name)
    .filter((name) => name !== "viewport" && name !== "robots");
  assert.deepEqual(
    names.filter((name) => ["customer", "pin", "mail", "word", "shown", "totp"].includes(String(name))),
    ["customer", "pin", "mail", "word", "shown", "totp"],
  );
  for (const text of [
    "Fields &lt;b&gt;of&lt;/b&gt; all types",
    "Describes &amp; explains",
    "Customer number",
    "On &lt;your&gt; card",
  ]) {
    assert.ok(page.includes(text), text);
  }
  const input = (key: string) =>
    page.match(/<input[^>]*>/g)?.find((each) => each.includes(`name="${key}"`)) ?? "";
  const kind = (key: string) => /type="(\w+)"/.exec(input(key))?.[1];
  assert.deepEqual(["customer", "pin", "mail", "word", "shown", "totp"].map(kind), [
    "text",
    "password",
    "email",
    "password",
    "password",
    "password",
  ]);
  assert.match(input("customer"), /placeholder="AB12"/);
  assert.match(input("customer"), /autocomplete="off"/);
  assert.match(input("customer"), /aria-required="true"/);
  assert.doesNotMatch(input("mail"), /aria-required/);
});

const REFUSED: readonly (readonly [name: string, values: Readonly<Record<string, string>>, says: RegExp])[] =
  [
    ["pattern", { ...GOOD, customer: "ab123" }, /Customer number does not have the expected form/],
    [
      "pattern, whole value",
      { ...GOOD, customer: "AB12x" },
      /Customer number does not have the expected form/,
    ],
    ["min_length", { ...GOOD, customer: "AB1" }, /Customer number must have at least 4 characters/],
    ["max_length", { ...GOOD, customer: "AB12345" }, /Customer number must have at most 6 characters/],
    ["required", { word: "secret-word" }, /Customer number is required/],
    [
      "min_length of an optional field that is filled in",
      { ...GOOD, pin: "98765" },
      /pin must have at least 6 characters/,
    ],
    ["email", { ...GOOD, mail: "nobody" }, /Mail must be an email address/],
    ["max_length of a password", { ...GOOD, word: "x".repeat(21) }, /Word must have at most 20 characters/],
    ["totp_secret", { ...GOOD, totp: "not base32!" }, /class="error"/],
    [
      "totp_secret, an otpauth URI of another kind",
      { ...GOOD, totp: "otpauth://hotp/x?secret=GEZDGNBVGY3TQOJQ&counter=1" },
      /class="error"/,
    ],
  ];

test("each option refuses what it should, keeps what was typed but no secret, and the session stays pending", async () => {
  const session = await openSession();
  for (const [name, values, says] of REFUSED) {
    const answer = await submitHostedForm(session.hosted_url, values);
    const page = await answer.text();
    assert.equal(answer.status, 422, name);
    assert.match(page, says, name);
    assert.ok(!page.includes("secret-word") && !page.includes("98765"), name);
    if (values["mail"] !== undefined) assert.ok(page.includes('value="nobody"'), name);
  }
  assert.equal((await bench.caller.get(`/credential-sessions/${session.id}`)).body.status, "pending");
  assert.equal((await submitHostedForm(session.hosted_url, GOOD)).status, 200);
  assert.equal((await bench.caller.get(`/credential-sessions/${session.id}`)).body.status, "completed");
});

test("what was typed reaches the login to the byte; what was left empty does not exist there", async () => {
  const typed = { customer: "ÄB1234", word: '  wörd " & <b> ' };
  const session = await openSession();
  assert.equal((await submitHostedForm(session.hosted_url, typed)).status, 422);
  const id = await bench.connect("strat_fields", {
    ...GOOD,
    word: typed.word,
    mail: " a@b.example ",
    extra: "ignored",
  });
  const run = await bench.run("fields", { credential_id: id });
  const sent = JSON.parse(bench.target.seen("POST /login").at(-1)?.body ?? "");
  assert.deepEqual(sent, { customer: "AB123", word: typed.word, mail: "a@b.example" });
  assert.equal(bench.target.seen("POST /code").length, 0);
  assert.equal(run.status.status, "completed", String(run.detail));
});

test("a totp_secret is taken in any spacing and case, and as a whole otpauth URI, with the code that RFC 6238 says", async () => {
  // RFC 6238's own secret; the code is computed by an independent implementation.
  const expected = (options: object) =>
    new TOTP({ secret: Secret.fromBase32("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"), ...options });
  const cases = [
    ["gezd GNBV-gy3t qojq gezd gnbv gy3t qojq", expected({})],
    ["otpauth://totp/Acme:ana?secret=gezdgnbvgy3tqojqgezdgnbvgy3tqojq&issuer=Acme", expected({})],
    [
      "otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&digits=8&algorithm=SHA512&period=60",
      expected({ digits: 8, algorithm: "SHA512", period: 60 }),
    ],
  ] as const;
  for (const [typed, totp] of cases) {
    const id = await bench.connect("strat_fields", { ...GOOD, totp: typed });
    const run = await bench.run("fields", { credential_id: id });
    assert.equal(run.status.status, "completed", String(run.detail));
    const sent = bench.target.seen("POST /code").at(-1)?.body;
    const now = Date.now();
    assert.ok(
      [now, now - 10_000].some((timestamp) => totp.generate({ timestamp }) === sent),
      `${typed}: ${sent}`,
    );
  }
});

test("secret: true on a text redacts it where the target echoes it, in every spelling; other texts are not touched", async () => {
  const pin = "pin/77 &42";
  bench.target.on("GET /api/read", {
    json: [
      {
        plain: pin,
        url: encodeURIComponent(pin),
        base64: Buffer.from(pin).toString("base64"),
        hex: Buffer.from(pin).toString("hex"),
      },
      { word: "secret-word", shown: "shown-word", customer: "AB123" },
    ],
  });
  const id = await bench.connect("strat_fields", { ...GOOD, pin, shown: "shown-word" });
  const run = await bench.run("fields", { credential_id: id });
  assert.deepEqual(dataOf(run), [
    { plain: "[REDACTED]", url: "[REDACTED]", base64: "[REDACTED]", hex: "[REDACTED]" },
    { word: "[REDACTED]", shown: "shown-word", customer: "AB123" },
  ]);
});
