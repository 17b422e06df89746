import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { JsonObject } from "#domain/json.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { loadLoginTypes, loginTypes } from "#strategies/registry.ts";
import { CANARY, startTarget, type Seen } from "../outbound/targets.ts";
import { assertLoginFails, findings, logIn } from "./login-context.ts";

const hosts = ["http://127.0.0.1:1"];

test("the registry has every type by its file's name", () => {
  assert.deepEqual(
    [...loginTypes.keys()],
    ["basic", "bearer", "browser", "digest", "headers", "http", "mtls", "none", "oauth2", "query"],
  );
  for (const [name, { type }] of loginTypes) assert.equal(type, name);
});

test("a login type in a file of another name is refused at start", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "latchkey-logins-"));
  context.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "wrong.ts"), 'export const login = { type: "right" };\n');
  assert.throws(() => loadLoginTypes(folder), /"right" must be in a file named right\.ts, not in wrong\.ts/);
});

test("none gives an empty session", async (t) => {
  assert.deepEqual(await logIn(t, "none", {}, { hosts }), { headers: {}, cookies: null });
});

test("basic gives an Authorization header in UTF-8", async (t) => {
  const config = { username: "username", password: "password" };
  const session = await logIn(t, "basic", config, {
    hosts,
    credential: { username: "zoë", password: "pä:ss €" },
  });
  const [scheme, token = ""] = session.headers["authorization"]?.split(" ") ?? [];
  assert.equal(scheme, "Basic");
  assert.equal(Buffer.from(token, "base64").toString("utf8"), "zoë:pä:ss €");
  const keyOnly = await logIn(t, "basic", config, { hosts, credential: { username: "key" } });
  assert.equal(keyOnly.headers["authorization"], `Basic ${Buffer.from("key:").toString("base64")}`);
  await assertLoginFails(
    logIn(t, "basic", config, { hosts, credential: {} }),
    /the fields username and password are empty/,
  );
  await assertLoginFails(
    logIn(t, "basic", config, { hosts, credential: { username: `a:${CANARY}`, password: "x" } }),
    /contains a colon/,
  );
});

test("bearer gives an Authorization header, and takes the line break off a pasted token", async (t) => {
  const config = { token: "password" };
  const session = await logIn(t, "bearer", config, { hosts, credential: { password: " tok.en\n" } });
  assert.deepEqual(session, { headers: { authorization: "Bearer tok.en" }, cookies: null });
  await assertLoginFails(
    logIn(t, "bearer", config, { hosts, credential: {} }),
    /the field password is empty/,
  );
  await assertLoginFails(
    logIn(t, "bearer", config, { hosts, credential: { password: `${CANARY}\nx-evil: 1` } }),
    /has characters that no token has/,
  );
});

test("headers are rendered, lower-cased, and left out when they give nothing", async (t) => {
  const config = {
    headers: {
      "X-Api-Key": "{{ $credential.password }}",
      "X-Mixed": "id={{ $credential.username }}",
      "X-None": "{{ $credential.totp }}",
    },
  };
  const session = await logIn(t, "headers", config, {
    hosts,
    credential: { username: "dana", password: "k" },
  });
  assert.deepEqual(session, { headers: { "x-api-key": "k", "x-mixed": "id=dana" }, cookies: null });
  const only = { headers: { "X-Api-Key": "{{ $credential.password }}" } };
  await assertLoginFails(logIn(t, "headers", only, { hosts, credential: {} }), /every header is empty/);
  await assertLoginFails(
    logIn(t, "headers", only, { hosts, credential: { password: `${CANARY}\r\nx: y` } }),
    /the header X-Api-Key has characters/,
  );
  const broken = { headers: { "X-Api-Key": "{{ $number($credential.password) }}" } };
  await assertLoginFails(
    logIn(t, "headers", broken, { hosts }),
    /the expression `\$number\(\$credential\.password\)` failed/,
  );
});

test("apply refuses field keys that the strategy doesn't have, with the nearest", () => {
  assert.deepEqual(findings("basic", { username: "user_name", password: "password" }), [
    "username: the strategy has no field `user_name`; did you mean `username`?",
  ]);
  assert.deepEqual(findings("bearer", { token: "passwrd" }), [
    "token: the strategy has no field `passwrd`; did you mean `password`?",
  ]);
  assert.match(findings("bearer", { token: "zzzzzzz" })[0] ?? "", /no field `zzzzzzz`; it has: `username`/);
});

test("apply refuses header names that can't be, that belong to the connection, or that stand twice", () => {
  const headers = {
    "X Key": "a",
    Host: "b",
    "content-length": "1",
    "x-a": "1",
    "X-A": "2",
    "": "x",
    "x-ok": "1",
  };
  assert.deepEqual(
    findings("headers", { headers }).map((finding) => finding.replace(/`; .*$|; .*$/, "")),
    [
      "headers.X Key: `X Key` is not a valid header name",
      "headers.Host: the header `Host` belongs to the connection",
      "headers.content-length: the header `content-length` belongs to the connection",
      "headers.X-A: the header `X-A` is listed twice, in different case",
      "headers.: `` is not a valid header name",
    ],
  );
});

test("headers from a field: those that the end user added, and the strategy's own, which win", async (t) => {
  const config = { from: "extra", headers: { "X-Own": "{{ $credential.username }}" } };
  const extra = '[["X-Api-Key","k"],["x-own","stolen"]]';
  const session = await logIn(t, "headers", config, { hosts, credential: { username: "dana", extra } });
  assert.deepEqual(session.headers, { "x-api-key": "k", "x-own": "dana" });
  await assertLoginFails(
    logIn(t, "headers", { from: "extra" }, { hosts, credential: {} }),
    /every header is empty/,
  );
});

test("query gives parameters, in UTF-8, and leaves out what gives nothing", async (t) => {
  const config = {
    params: {
      api_key: "{{ $credential.password }}",
      shop: "s/{{ $credential.username }}",
      none: "{{ $credential.totp }}",
    },
  };
  const session = await logIn(t, "query", config, {
    hosts,
    credential: { username: "zoë", password: "k&=" },
  });
  assert.deepEqual(session, {
    headers: {},
    cookies: null,
    query: [
      ["api_key", "k&="],
      ["shop", "s/zoë"],
    ],
  });
  await assertLoginFails(
    logIn(t, "query", { params: { k: "{{ $credential.password }}" } }, { hosts, credential: {} }),
    /every parameter is empty/,
  );
  assert.match(findings("query", {})[0] ?? "", /params/);
  assert.match(findings("query", { params: { "": "x" } })[0] ?? "", /a parameter needs a name/);
});

test("apply refuses a `from` of headers that is no field of headers", () => {
  assert.deepEqual(findings("headers", { from: "password" }), [
    "from: the field `password` is of type `password`; it must be a `headers`",
  ]);
  assert.match(
    findings("headers", { from: "pasword" })[0] ?? "",
    /no field `pasword`; did you mean `password`/,
  );
  assert.match(findings("headers", {})[0] ?? "", /the key `headers` is missing/);
});

test("unknown keys are refused by every type", () => {
  for (const [type, config] of Object.entries({
    none: {},
    basic: { username: "username", password: "password" },
    bearer: { token: "password" },
    headers: { headers: { a: "b" } },
  })) {
    assert.deepEqual(findings(type, config), []);
    assert.match(findings(type, { ...config, extra: 1 })[0] ?? "", /schema/, type);
  }
});

const CHECKED: Readonly<
  Record<string, readonly [config: JsonObject, carries: (seen: Seen) => string | undefined]>
> = {
  basic: [
    { username: "username", password: "password" },
    ({ headers }) => headers.authorization && atob(headers.authorization.slice("Basic ".length)),
  ],
  bearer: [{ token: "password" }, ({ headers }) => headers.authorization],
  headers: [
    { headers: { "X-Key": "{{ $credential.password }}" } },
    ({ headers }) => headers["x-key"] as string | undefined,
  ],
  query: [
    { params: { key: "{{ $credential.password }}" } },
    ({ url }) => new URL(url, "http://target").searchParams.get("key") ?? undefined,
  ],
};
for (const [type, [config, carries]] of Object.entries(CHECKED)) {
  test(`a \`check\` tells whether the target takes a login of type ${type}, which sends nothing without one`, async (t) => {
    const target = await startTarget(t, (seen, response) =>
      response.writeHead(carries(seen)?.includes(CANARY) === true ? 200 : 401).end("hello"),
    );
    const checked = { ...config, check: { request: { url: "/me" }, expect: { text: "hello" } } };
    const attempt = async (given: JsonObject, password: string) =>
      await logIn(t, type, given, { hosts: [target.origin], credential: { username: "dana", password } });

    await attempt(config, "wrong");
    assert.equal(target.seen.length, 0);
    await attempt(checked, CANARY);
    assert.deepEqual(
      target.seen.map(({ method }) => method),
      ["GET"],
    );
    const failure: unknown = await attempt(checked, "wrong").catch((error: unknown) => error);
    assert.ok(failure instanceof LoginFailure);
    assert.equal(failure.message, "login check (GET /me): expected status 200 to 299, got 401");
    assert.equal(failure.rejected, true, "it counts: a next one may lock the end user out");
    assert.match(
      findings(type, { ...config, check: { request: { url: "/me", json: 1 } } })[0] ?? "",
      /^check\.request\.json: a request with a body needs a `method`/,
    );
  });
}
