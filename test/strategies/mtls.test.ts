import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { explainIssue } from "#domain/form-issue.ts";
import { readClientCertificate } from "#strategies/client-certificate.ts";
import { loginTypes } from "#strategies/registry.ts";
import { must } from "#lib/assert.ts";
import { assertLoginFails, findings, logIn } from "./login-context.ts";

const fixture = (name: string): string =>
  readFileSync(new URL(`certificates/${name}`, import.meta.url), "utf8");
const CERTIFICATE = fixture("client.pem");
const KEY = fixture("client.key.pem");
const LOCKED = fixture("client.locked.key.pem");
const NOW_MS = Date.parse("2030-01-01");
const hosts = ["https://127.0.0.1:1"];
const config = { certificate: "pem", key: "pem" };

const read = (texts: Partial<Parameters<typeof readClientCertificate>[0]>, nowMs = NOW_MS) =>
  readClientCertificate({ certificate: CERTIFICATE, key: KEY, passphrase: undefined, ...texts }, nowMs);

test("a certificate and its key are read: apart, in one file, with a chain, with a passphrase", () => {
  const apart = read({});
  assert.ok(apart.ok);
  assert.deepEqual(read({ certificate: KEY + CERTIFICATE, key: KEY + CERTIFICATE }), apart);
  assert.deepEqual(read({ key: LOCKED, passphrase: "correct-horse" }), apart);
  assert.deepEqual(
    read({ certificate: `Bag Attributes\r\n${CERTIFICATE.replaceAll("\n", "\r\n")}` }).ok,
    true,
  );
  const chain = read({ certificate: CERTIFICATE + fixture("ca.pem") });
  assert.ok(chain.ok && chain.certificate.split("BEGIN CERTIFICATE").length === 3);
  assert.ok(!apart.certificate.includes("PRIVATE KEY"));
});

test("what can't be presented is refused at its field, in words for the end user and without what was sent", () => {
  const middle = CERTIFICATE.split("\n")[3] ?? "";
  const cases: readonly (readonly [
    Parameters<typeof read>[0],
    part: string,
    says: RegExp,
    nowMs?: number,
  ])[] = [
    [{ certificate: "" }, "certificate", /no certificate in PEM form/],
    [{ certificate: KEY }, "certificate", /no certificate in PEM form/],
    [{ certificate: CERTIFICATE.replace(middle, "") }, "certificate", /can't be read/],
    [{ certificate: CERTIFICATE + CERTIFICATE.replace(middle, "") }, "certificate", /can't be read/],
    [{}, "certificate", /has expired/, Date.parse("2199-01-01")],
    [{ key: CERTIFICATE }, "key", /no private key in PEM form/],
    [{ key: KEY.replace(/\n.*\n/, "\n") }, "key", /can't be read/],
    [{ key: fixture("stranger.key.pem") }, "key", /does not belong to the certificate/],
    [{ key: LOCKED }, "key", /protected by a passphrase/],
    [{ key: LOCKED, passphrase: "" }, "key", /protected by a passphrase/],
    [{ key: LOCKED, passphrase: "wrong-pass" }, "passphrase", /can't be decrypted with this passphrase/],
  ];
  for (const [texts, part, says, nowMs] of cases) {
    const answer = read(texts, nowMs);
    assert.ok(!answer.ok, String(says));
    assert.equal(answer.part, part);
    const message = explainIssue(answer.issue, "Certificate");
    assert.match(message, says);
    assert.ok(!message.includes("wrong-pass") && !message.includes(middle));
  }
});

test("the login gives the certificate, and fails without it", async (t) => {
  const session = await logIn(t, "mtls", config, { hosts, credential: { pem: CERTIFICATE + KEY } });
  assert.deepEqual(session.headers, {});
  assert.match(session.certificate?.key ?? "", /BEGIN PRIVATE KEY/);
  await assertLoginFails(
    logIn(t, "mtls", config, { hosts, credential: {} }),
    /^login \(mtls\): the field pem: This contains no certificate in PEM form/,
  );
});

test("a submitted certificate is checked at once, an optional one that was left out is not", () => {
  const type = must(loginTypes.get("mtls"), "mtls");
  const fields = { certificate: "cert", key: "key", passphrase: "word" };
  const submitted = (values: Record<string, string>) =>
    Object.fromEntries(must(type.checkSubmitted?.(fields, new Map(Object.entries(values))), "its check"));
  assert.deepEqual(submitted({ cert: CERTIFICATE, key: KEY }), {});
  assert.deepEqual(submitted({ cert: CERTIFICATE }), {});
  assert.deepEqual(Object.keys(submitted({ cert: KEY, key: KEY })), ["cert"]);
  assert.deepEqual(Object.keys(submitted({ cert: CERTIFICATE, key: LOCKED })), ["key"]);
  assert.deepEqual(Object.keys(submitted({ cert: CERTIFICATE, key: LOCKED, word: "no" })), ["word"]);
});

test("apply wants file fields, and hosts that speak TLS", () => {
  assert.deepEqual(findings("mtls", config), []);
  assert.deepEqual(findings("mtls", { certificate: "password", key: "pm", passphrase: "nothing" }), [
    "certificate: the field `password` is of type `password`; it must be a `file`",
    "key: the strategy has no field `pm`; did you mean `pem`?",
    "passphrase: the strategy has no field `nothing`; it has: `username`, `password`, `totp`, `extra`, `pem`",
  ]);
  const type = must(loginTypes.get("mtls"), "mtls");
  const fields = { fieldKeys: ["pem"], fieldTypes: new Map([["pem", "file"]]) };
  assert.match(
    type.check?.(config, { ...fields, hosts: ["http://portal.example"] })[0]?.message ?? "",
    /`http:\/\/portal\.example` is not https/,
  );
});
