import assert from "node:assert/strict";
import { test } from "node:test";
import { readStrategy } from "#domain/strategy.ts";
import { sessionSecrets } from "#engine/login/login-secrets.ts";
import { Secret } from "#lib/secret.ts";
import type { LoginSession } from "#strategies/define-login.ts";

const STRATEGY = readStrategy({
  strategy: "strat_portal",
  account: "acme",
  hosts: ["https://portal.example"],
  fields: [
    { key: "username", label: "User name", type: "text", required: true },
    { key: "password", label: "Password", type: "password", required: true },
  ],
  login: {
    type: "http",
    steps: [{ request: { url: "/login", headers: { accept: "application/vnd.portal" } } }],
  },
});
const FIELDS = new Secret(
  new Map([
    ["username", "amelia"],
    ["password", "correct-horse"],
  ]),
);

const secretsOf = (session: Partial<LoginSession>): readonly unknown[] =>
  sessionSecrets(STRATEGY, FIELDS, new Secret({ headers: {}, cookies: null, ...session }));
const ofHeader = (value: string): readonly unknown[] => secretsOf({ headers: { "x-any": value } });

test("of a header the token is secret, whatever scheme or parameter stands before it", () => {
  for (const scheme of ["Token", "JWT", "ApiKey", "SSWS", "Bearer", "Basic", "AccessToken"])
    assert.deepEqual(ofHeader(`${scheme} abcdef-123456`), ["abcdef-123456"], scheme);
  assert.deepEqual(ofHeader('Digest username="amelia", response="0123abcdef", nonce=n0nce-1'), [
    'username="amelia", response="0123abcdef", nonce=n0nce-1',
    "0123abcdef",
    "n0nce-1",
  ]);
  assert.deepEqual(ofHeader("prefix-1;abcdef-2,abcdef-3"), [
    "prefix-1;abcdef-2,abcdef-3",
    "prefix-1",
    "abcdef-2",
    "abcdef-3",
  ]);
});

test("parameters of the query as well, and what the login extracted or sent as a code", () => {
  assert.deepEqual(secretsOf({ query: [["key", "secret-key-1"]] }), ["secret-key-1"]);
  assert.deepEqual(
    secretsOf({
      extracted: { secret: ["csrf-token-1", "5551234567", "short"], open: [] },
      codes: ["482913"],
    }),
    ["csrf-token-1", { value: "5551234567", alone: true }, { value: "482913", alone: true }],
  );
});

test("what the document says itself, a field that is not secret, and `secret: false` are none", () => {
  assert.deepEqual(ofHeader("application/vnd.portal"), []);
  assert.deepEqual(ofHeader("amelia"), []);
  assert.deepEqual(
    secretsOf({ headers: { "x-tenant": "tenant-4711" }, extracted: { secret: [], open: ["tenant-4711"] } }),
    [],
  );
});
