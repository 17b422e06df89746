import assert from "node:assert/strict";
import { test } from "node:test";
import type { KnownConfig } from "#actions/config/check-config.ts";
import { problemsOf } from "./problems-of.ts";

const known: KnownConfig = { accounts: new Set(["acme"]), strategies: new Map(), secrets: new Map() };

test("`verify` needs a login that asks the target for something, and says what is missing", () => {
  const verified = (login: string): readonly string[] =>
    problemsOf(
      `strategy: strat_portal
account: acme
hosts: [https://portal.example]
fields: [{ key: token, type: password }]
login: ${login}
verify: true
`,
      known,
    );
  const bearer = "type: bearer, token: token";
  assert.deepEqual(verified(`{ ${bearer}, check: { request: { url: /me } } }`), []);
  assert.deepEqual(verified(`{ ${bearer} }`), [
    "6:9 verify this login sends nothing, so there is nothing to try; add a `check` to `login`, or remove `verify`",
  ]);
  assert.deepEqual(verified("{ type: none }"), [
    '6:9 verify with the login type "none" nothing is ever sent, so there is nothing to try; remove `verify`',
  ]);
  const oauth = (more: string): readonly string[] =>
    verified(`{ type: oauth2, token_url: https://portal.example/token, client_id: c, ${more} }`).filter(
      (problem) => problem.includes(" verify "),
    );
  assert.deepEqual(oauth("authorization_url: https://portal.example/authorize"), [
    "6:9 verify the end user signs in at the target itself, which tries the login; remove `verify`",
  ]);
  assert.deepEqual(oauth("client_secret: { secret: portal }, grant: client_credentials"), []);
});
