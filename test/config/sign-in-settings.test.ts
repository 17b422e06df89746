// How operators sign in: what is wrong with the settings is told at the start, with the name and what to do.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ConfigError, readConfig } from "../../src/service/settings/settings.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-settings-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const GOOD = { LATCHKEY_OIDC_ISSUER: "https://login.example.com/", LATCHKEY_OIDC_CLIENT_ID: "latchkey" };
const read = (environment: Readonly<Record<string, string>>) => readConfig(environment, folder).signIn;

function problemsOf(environment: Readonly<Record<string, string>>): readonly string[] {
  try {
    read(environment);
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems;
  }
}

test("without settings there is the password alone", () => {
  assert.deepEqual(read({}), { oidc: null, passwordSignIn: true });
});

test("an issuer is kept as it is written, the secret comes from its variable or its file", () => {
  const { oidc } = read(GOOD);
  assert.deepEqual(
    [oidc?.issuer.href, oidc?.clientSecret, oidc?.scopes, oidc?.label, oidc?.requireTotp],
    ["https://login.example.com/", null, "openid email", "single sign-on", false],
  );
  writeFileSync(join(folder, "secret"), "from-the-file\n");
  const file = { ...GOOD, LATCHKEY_OIDC_CLIENT_SECRET_FILE: "secret" };
  assert.equal(read(file).oidc?.clientSecret?.reveal(), "from-the-file");
  const both = { ...file, LATCHKEY_OIDC_CLIENT_SECRET: "from-the-variable" };
  assert.equal(read(both).oidc?.clientSecret?.reveal(), "from-the-variable");
  assert.ok(!JSON.stringify(read(both)).includes("from-the"));
  assert.equal(read({ ...GOOD, LATCHKEY_PASSWORD_SIGN_IN: "off" }).passwordSignIn, false);
  for (const issuer of ["http://localhost:1", "http://127.0.0.1:9/realm", "http://[::1]"])
    assert.equal(problemsOf({ ...GOOD, LATCHKEY_OIDC_ISSUER: issuer }).length, 0, issuer);
});

test("DATABASE_URL comes from its variable or its file, and no problem quotes it", () => {
  const url = "postgres://someone@db.example/latchkey";
  writeFileSync(join(folder, "database-url"), `${url}\n`);
  const byFile = { DATABASE_URL_FILE: "database-url" };
  assert.equal(readConfig(byFile, folder).databaseUrl?.reveal(), url);
  const both = { ...byFile, DATABASE_URL: "postgresql://first" };
  assert.equal(readConfig(both, folder).databaseUrl?.reveal(), "postgresql://first");
  writeFileSync(join(folder, "wrong-url"), "mysql://someone@db.example/latchkey");
  assert.deepEqual(problemsOf({ DATABASE_URL_FILE: "wrong-url" }), [
    "DATABASE_URL must be a postgres:// or postgresql:// URL.",
  ]);
  assert.match(String(problemsOf({ DATABASE_URL_FILE: "missing" })), /^DATABASE_URL_FILE: .* can't be read/);
});

const WRONG: readonly (readonly [RegExp, Readonly<Record<string, string>>])[] = [
  [/^LATCHKEY_OIDC_ISSUER must be an https URL/, { LATCHKEY_OIDC_ISSUER: "http://login.example.com" }],
  [/^LATCHKEY_OIDC_ISSUER must be an https URL/, { LATCHKEY_OIDC_ISSUER: "login.example.com" }],
  [/^LATCHKEY_OIDC_ISSUER must be an https URL/, { LATCHKEY_OIDC_ISSUER: "https://a:b@login.example.com" }],
  [/^LATCHKEY_OIDC_ISSUER must be an https URL/, { LATCHKEY_OIDC_ISSUER: "https://login.example.com/?x=1" }],
  [/^LATCHKEY_OIDC_ISSUER is set without LATCHKEY_OIDC_CLIENT_ID: set it/, { LATCHKEY_OIDC_CLIENT_ID: "" }],
  [/^LATCHKEY_OIDC_CLIENT_ID must be/, { LATCHKEY_OIDC_CLIENT_ID: "a\u0007b" }],
  [/^LATCHKEY_OIDC_SCOPES must be .*openid/, { LATCHKEY_OIDC_SCOPES: "email profile" }],
  [/^LATCHKEY_OIDC_LABEL must be/, { LATCHKEY_OIDC_LABEL: "x".repeat(41) }],
  [/^LATCHKEY_OIDC_REQUIRE_TOTP must be true or false/, { LATCHKEY_OIDC_REQUIRE_TOTP: "yes" }],
  [/^LATCHKEY_PASSWORD_SIGN_IN must be on or off/, { LATCHKEY_PASSWORD_SIGN_IN: "no" }],
  [
    /^LATCHKEY_OIDC_CLIENT_SECRET_FILE: .*missing can't be read \(ENOENT\)/,
    { LATCHKEY_OIDC_CLIENT_SECRET_FILE: "missing" },
  ],
];

for (const [message, change] of WRONG)
  test(`${JSON.stringify(change)} is refused by its name`, () => {
    const problems = problemsOf({ ...GOOD, ...change });
    assert.equal(problems.length, 1, problems.join("\n"));
    assert.match(problems[0] ?? "", message);
  });

test("what means nothing alone is refused, and a sign-in that nobody could use", () => {
  assert.match(
    problemsOf({ LATCHKEY_OIDC_LABEL: "X" })[0] ?? "",
    /has no effect unless LATCHKEY_OIDC_ISSUER is set/,
  );
  assert.match(problemsOf({ LATCHKEY_PASSWORD_SIGN_IN: "off" })[0] ?? "", /nobody could sign in/);
});
