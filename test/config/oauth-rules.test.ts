// docs/strategies.md#oauth2: what `apply` checks of the login type `oauth2`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { problemsOf } from "./problems-of.ts";

const FIELDS = "[{ key: tenant, type: text }, { key: user, type: text }, { key: pass, type: password }]";
const strategy = (login: string, fields: string | null = FIELDS) =>
  `strategy: strat_o
account: acme
hosts: [https://api.acme.example]
${fields === null ? "description: nothing to type" : `fields: ${fields}`}
login: { type: oauth2, ${login} }`;

const ISSUER = "issuer: https://id.acme.example";
const problems = (login: string, fields?: string | null) =>
  problemsOf(`account: acme\n---\n${strategy(login, fields)}`).map((line) =>
    line.replace(/^.*?\d+:\d+ /, ""),
  );

const GOOD: Record<string, string> = {
  discovery: `client_id: c, ${ISSUER}`,
  "both addresses":
    "client_id: c, authorization_url: https://id.acme.example/a?x=1, token_url: https://id.acme.example/t",
  "issuer with a token_url elsewhere": `client_id: c, ${ISSUER}, token_url: https://tokens.acme.example/t`,
  templates: `client_id: "{{ $credential.user }}", issuer: "https://id.acme.example/{{ $credential.tenant }}/v2", extra_params: { audience: "{{ $credential.tenant }}" }`,
  "an account secret": `client_id: c, client_secret: { secret: ACME_SECRET }, token_auth: client_secret_post, scopes: [openid, a.b:c], ${ISSUER}`,
  "client credentials of the end user": `grant: client_credentials, client_id: "{{ $credential.user }}", client_secret: "{{ $credential.pass }}", ${ISSUER}`,
  password: `grant: password, client_id: c, username: user, password: pass, ${ISSUER}`,
  "loopback over http": "client_id: c, issuer: http://127.0.0.1:4700",
};
for (const [name, login] of Object.entries(GOOD))
  test(`taken: ${name}`, () => assert.deepEqual(problems(login), []));

test("taken: no fields at all", () => assert.deepEqual(problems(`client_id: c, ${ISSUER}`, null), []));

const BAD: Record<string, readonly [login: string, expected: RegExp, fields?: string | null]> = {
  "no client": [ISSUER, /^login the key `client_id` is missing/],
  "no server": [
    "client_id: c",
    /^login the key `issuer` is missing.* or `authorization_url` and `token_url`$/,
  ],
  "no place to log in": [
    "client_id: c, token_url: https://a.example/t",
    /^login the key `issuer` is missing.* or `authorization_url`$/,
  ],
  "an unknown key": [`client_id: c, ${ISSUER}, scope: a`, /^login.scope .*did you mean `scopes`\?/],
  "an unknown grant": [`client_id: c, grant: implicit, ${ISSUER}`, /^login.grant must be one of/],
  http: ["client_id: c, issuer: http://id.acme.example", /^login.issuer must begin with https:/],
  "a relative address": [
    `client_id: c, token_url: /token, ${ISSUER}`,
    /^login.token_url must be an absolute URL/,
  ],
  "a template in the host": [
    'client_id: c, issuer: "https://{{ $credential.tenant }}.example"',
    /^login.issuer the host of a URL/,
  ],
  "a user name in the address": [
    "client_id: c, issuer: https://u:p@id.example",
    /^login.issuer a URL must not contain a user name/,
  ],
  "a fragment": [
    `client_id: c, ${ISSUER}, token_url: "https://a.example/t#x"`,
    /^login.token_url must not have a fragment/,
  ],
  "a secret in the document": [
    `client_id: c, client_secret: s3cret, ${ISSUER}`,
    /^login.client_secret a document must not contain a secret/,
  ],
  "a variable": [
    `client_id: c, client_secret_env: ACME_SECRET, ${ISSUER}`,
    /^login.client_secret_env nothing defines where .* write `client_secret: \{ secret: ACME_SECRET \}`/,
  ],
  "no secret's name": [
    `client_id: c, client_secret: { secret: a-b }, ${ISSUER}`,
    /^login.client_secret(.secret)? must be/,
  ],
  "a secret with another key": [
    `client_id: c, client_secret: { secret: A, value: b }, ${ISSUER}`,
    /^login.client_secret/,
  ],
  "the owner of our database": [
    `client_id: c, client_secret_env: DATABASE_OWNER_URL, ${ISSUER}`,
    /^login.client_secret_env `DATABASE_OWNER_URL` is one of the service's own variables/,
  ],
  "none with a secret": [
    `client_id: c, client_secret: { secret: A }, token_auth: none, ${ISSUER}`,
    /^login.token_auth `none` sends no secret/,
  ],
  "basic without a secret": [
    `client_id: c, token_auth: client_secret_basic, ${ISSUER}`,
    /^login.token_auth .* needs a secret/,
  ],
  "client credentials without a secret": [
    `client_id: c, grant: client_credentials, ${ISSUER}`,
    /^login the key `client_secret` is missing/,
  ],
  "an address for nobody": [
    `client_id: c, client_secret: { secret: A }, grant: client_credentials, authorization_url: https://a.example/a, ${ISSUER}`,
    /^login.authorization_url with `grant: client_credentials` no end user/,
  ],
  "password without a field": [
    `client_id: c, grant: password, username: user, ${ISSUER}`,
    /^login the key `password` is missing/,
  ],
  "password with an unknown field": [
    `client_id: c, grant: password, username: usr, password: pass, ${ISSUER}`,
    /^login.username the strategy has no field `usr`.*`user`/,
  ],
  "a user in another grant": [
    `client_id: c, username: user, ${ISSUER}`,
    /^login.username belongs to `grant: password`/,
  ],
  "a parameter of the protocol": [
    `client_id: c, extra_params: { state: x }, ${ISSUER}`,
    /^login.extra_params.state `state` is a parameter of the protocol/,
  ],
  "openid without an issuer": [
    "client_id: c, scopes: [a, openid], authorization_url: https://a.example/a, token_url: https://a.example/t",
    /^login.scopes\[1\] `openid` asks for an ID token/,
  ],
  "a scope with a blank": [
    `client_id: c, scopes: ["a b"], ${ISSUER}`,
    /^login.scopes\[0\] must be one scope/,
  ],
  "an unknown variable": [
    `client_id: "{{ $credential.tenannt }}", ${ISSUER}`,
    /^login.client_id the strategy has no field `tenannt`/,
  ],
  "a variable without fields": [
    'client_id: "{{ $credential.tenant }}", issuer: https://id.acme.example',
    /^login.client_id the strategy has no field `tenant`/,
    null,
  ],
  "a secret in an address": [
    `client_id: c, extra_params: { p: "{{ $credential.pass }}" }, ${ISSUER}`,
    /^login.extra_params.p the secret field `pass` would become part of a URL/,
  ],
  "a cache": [`client_id: c, cache: 5m, ${ISSUER}`, /^login.cache login type `oauth2` keeps its tokens/],
};
for (const [name, [login, expected, fields]] of Object.entries(BAD)) {
  test(`refused by name and place: ${name}`, () => {
    const found = problems(login, fields);
    assert.equal(found.length, 1, found.join("\n"));
    assert.match(String(found[0]), expected);
  });
}
