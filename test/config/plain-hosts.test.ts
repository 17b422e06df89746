// L1: what goes over the internet in the clear says so, in the document or the settings.
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { isPlainPublic } from "#outbound/plain-http.ts";
import { ConfigError, readConfig } from "../../src/service/settings/settings.ts";
import { check } from "./problems-of.ts";

const PUBLIC = [
  "http://example.com",
  "http://example.com:8080",
  "http://erp.acme.com",
  "http://203.0.114.9",
  "http://[2a00:1450:4001::1]",
  "http://localhost.evil.com",
  "http://10.0.0.1.nip.io",
  "http://internal.com",
  "http://example.com.",
  "http://1.1",
  "http://134744072",
];

const FREE = [
  "https://example.com",
  "http://127.0.0.1:9",
  "http://0x7f.1",
  "http://10.1.2.3",
  "http://192.168.0.4:8080",
  "http://169.254.169.254",
  "http://[::1]:3000",
  "http://[fd00::1]",
  "http://localhost:3000",
  "http://app.localhost",
  "http://erp",
  "http://erp.internal:8443",
  "http://printer.local",
  "http://nas.home.arpa",
  "http://target.invalid",
  "http://portal.example",
];

test("public is what the public DNS or a public address may be, without a look-up", () => {
  for (const url of PUBLIC) assert.ok(isPlainPublic(url), url);
  for (const url of FREE) assert.ok(!isPlainPublic(url), url);
});

const strategy = (hosts: string, more = "") => `strategy: strat_plain
account: acme
hosts: [${hosts}]
${more}fields: [{ key: token, type: password }]
login: { type: bearer, token: token }`;
const blueprint = (hosts: string, more = "") => `blueprint: plain
account: acme
hosts: [${hosts}]
${more}nodes:
  - { id: read, type: http, request: { url: "http://example.com/x" }, records: $ }
  - { id: out, type: output, refKey: out, from: read }`;

test("hosts that are public and not encrypted are refused by their place, unless the document says `insecure: true`", () => {
  const problemsOf = (text: string) => check([{ file: "f", text: `account: acme\n---\n${text}` }]).problems;
  for (const make of [strategy, blueprint]) {
    const [problem = "", ...more] = problemsOf(make("https://a.example, http://example.com"));
    assert.match(
      problem,
      /^f:5:28 hosts\[1\] `http:\/\/example\.com` is public and not encrypted.*use https:\/\/, or put `insecure: true`/,
    );
    assert.deepEqual(more, []);
    assert.deepEqual(problemsOf(make("https://a.example, http://example.com", "insecure: true\n")), []);
    assert.equal(problemsOf(make("https://a.example, http://example.com", "insecure: false\n")).length, 1);
  }
  assert.deepEqual(problemsOf(strategy("http://127.0.0.1:8080, http://erp.internal, http://10.0.0.3")), []);
});

function settings(environment: Readonly<Record<string, string>>): readonly string[] {
  try {
    readConfig(environment, tmpdir());
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems;
  }
}

test("a public URL without encryption is refused, unless LATCHKEY_INSECURE says that it must be", () => {
  const plain = { LATCHKEY_PUBLIC_URL: "http://connect.acme.com" };
  const [problem = "", ...more] = settings(plain);
  assert.match(
    problem,
    /^LATCHKEY_PUBLIC_URL is public and not encrypted.*https:\/\/.*LATCHKEY_INSECURE=true/,
  );
  assert.deepEqual(more, []);
  assert.equal(settings({ ...plain, LATCHKEY_INSECURE: "false" }).length, 1);
  assert.deepEqual(settings({ ...plain, LATCHKEY_INSECURE: "true" }), []);
  assert.match(settings({ LATCHKEY_INSECURE: "yes" })[0] ?? "", /^LATCHKEY_INSECURE must be true or false/);
  for (const url of [
    "https://connect.acme.com",
    "http://localhost:8080",
    "http://10.0.0.4",
    "http://latchkey",
  ])
    assert.deepEqual(settings({ LATCHKEY_PUBLIC_URL: url }), [], url);
});
