import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FENCES } from "../scripts/layers.ts";

const root = join(import.meta.dirname, "..", "src");

const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .toSorted();
const filesWith = (pattern: RegExp): string[] =>
  files.filter((file) => pattern.test(readFileSync(join(root, file), "utf8")));

/** Where a `Secret` is opened, and what for. A new line here is a decision: say whom the value reaches. */
const REVEALED: Readonly<Record<string, string>> = {
  "lib/secret.ts": "the method itself",
  "cli/run-request.ts": "a credential of an author's own run, from the environment",
  "engine/local/local-run.ts":
    "a logged-in state of an author's own run, to record its names without their values",
  "engine/login/local-login.ts": "an access token of an author's own run",
  "engine/login/browse.ts": "a logged-in state, to begin a node's browser with it",
  "engine/login/login.ts": "a cached login's cookies, for the test whether it is still good",
  "engine/login/login-context.ts": "fields, for the login type and its expressions",
  "engine/login/login-secrets.ts": "fields and sessions, for the redactor",
  "engine/login/open-credential.ts": "a session, to be sealed again for the cache",
  "actions/secrets/import-environment-secrets.ts": "a variable's value, to be sealed as an account secret",
  "actions/sessions/begin-oauth.ts": "the key of a sign-in, to encrypt what was typed before leaving",
  "actions/sessions/complete-sign-in.ts": "the key of a sign-in, to decrypt what was typed before leaving",
  "actions/sessions/hand-over-sign-in.ts": "the key of a target's answer, to give it to another process",
  "actions/operators/oidc-provider.ts":
    "the client secret of operators' single sign-on, for the exchange of a code",
  "engine/login/target-session.ts": "headers and cookies of a session, hop by hop, in the gate",
  "lib/signing.ts": "the signing key, for its HMACs",
  "outbound/browser/fill-secret.ts": "one value, for one field of one document",
  "outbound/browser/open-browser.ts": "a logged-in state, for the browser that it is restored in",
  "lib/password.ts": "the secret of argon2, for operators' passwords",
  "service/assemble.ts": "the signing key, to be read at the start",
  "service/composition.ts":
    "the signing key, for the rows that a command reads; a client secret of the settings' file, for a login of an author's own run; an operator token, for requests to the service of another machine",
  "service/settings/database.ts": "the URLs of the database, to see how they begin",
  "service/open-client-secrets.ts":
    "a client secret of the settings, for its login type or the exchange of a sign-in's code",
  "vault/key-source.ts": "the keyset, to be read, and written where it is kept",
  "vault/kms-source.ts": "the keyset, to be wrapped by AWS KMS",
  "actions/vault/master-keys.ts": "the keyset, to add a key, and to say which is primary",
  "cli/master-key.ts": "a new keyset, shown where it can't be written: a variable's",
  "service/worker-role.ts": "the password of the mail server, for the mailer",
  "service/open-database.ts": "DATABASE_URL, for the driver",
  "cli/doctor.ts": "the signing key, to see whether it can be read",
  "cli/kept-logins.ts": "an operator token, to keep it in its owner's folder for the commands that follow",
  "cli/recorded-fields.ts": "what was typed while steps are recorded, to write a field's name in its place",
  "cli/own-signing.ts": "the signing key, for commands that make keys and write audit entries",
  "cli/webhook-trials.ts": "the API key, from which the signing secret of forwarded events follows",
};

/** Where sealed values are opened. */
const OPENED: Readonly<Record<string, string>> = {
  "vault/vault.ts": "the vault itself",
  "vault/one-key.ts": "what was typed before a sign-in at a target, under a key of that sign-in",
  "vault/sealed-stream.ts": "the random key of one backup, to decrypt its chunks",
  "engine/login/open-credential-bytes.ts": "credentials, cached logins and tokens, for the login alone",
  "service/open-client-secrets.ts": "account secrets, for a login type or the exchange of a sign-in's code",
  "actions/webhooks/deliver-webhooks.ts": "signing secrets, for the signatures of deliveries",
  "actions/vault/prepare-vault.ts": "the sentinel of a key, at the start",
  "actions/vault/check-vault.ts": "`doctor`: opened, zeroed, counted; `rewrap`: opened, sealed anew, zeroed",
};

test("a Secret is opened in the places of this list and in no other", () => {
  assert.deepEqual(filesWith(/\breveal\b/), Object.keys(REVEALED).toSorted());
});

test("sealed values are opened in the places of this list and in no other", () => {
  assert.deepEqual(
    filesWith(/\bvault\.open\(|\bflattenedDecrypt\(|\bcompactDecrypt\(|open: async \(sealed/),
    Object.keys(OPENED).toSorted(),
  );
});

test("a client's secret is asked for by a login and by the exchange of a sign-in's code alone", () => {
  assert.deepEqual(filesWith(/\.clientSecret\(|\bclientSecret\(account/), [
    "actions/sessions/oauth-access.ts",
    "engine/login/local-login.ts",
    "engine/login/open-credential-tokens.ts",
    "strategies/oauth/oauth-server.ts",
  ]);
});

test("nodes, expressions, login types, pages and the API have no Secret in their hands", () => {
  // A browser is given secrets by the login, and gives them to nobody but its pages.
  const outside =
    /^(nodes|strategies|expressions|contract|domain|api|hosted|operator|worker|outbound(?!\/browser)|blobs|db)\//;
  for (const file of [...Object.keys(REVEALED), ...Object.keys(OPENED)]) assert.doesNotMatch(file, outside);
  assert.deepEqual(
    filesWith(/#lib\/secret\.ts/).filter((file) => outside.test(file)),
    [],
    "not even the type",
  );
});

test("the modules that open credentials are imported by the login, and the linter keeps it so", () => {
  assert.deepEqual(filesWith(/["'](\.\/|#engine\/login\/)open-credential/), [
    "engine/login/login.ts",
    // Among themselves.
    "engine/login/open-credential-tokens.ts",
    "engine/login/open-credential.ts",
  ]);
  const fence = FENCES.find(({ modules }) => modules?.some((pattern) => pattern.includes("open-credential")));
  assert.deepEqual(fence?.where, { only: ["engine/login"] });
});

test("only the engine and the start give anybody a way out: the gate is made once and handed down", () => {
  assert.deepEqual(filesWith(/\bopenGate\(/), [
    "outbound/gate.ts",
    "service/assemble.ts",
    "service/composition.ts",
  ]);
  assert.deepEqual(filesWith(/\bopenTarget\(/), [
    "engine/execute-run.ts",
    "engine/local/local-run.ts",
    "engine/login/local-login.ts",
    "engine/login/log-in-run.ts",
    "engine/login/login-context.ts",
    "engine/login/open-credential-tokens.ts",
    "engine/login/target-session.ts",
  ]);
});
