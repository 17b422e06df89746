import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { parse } from "yaml";
import { OutboundError } from "#domain/http-exchange.ts";
import type { JsonObject } from "#domain/json.ts";
import { parseTotpSecret, totpCode } from "#domain/totp.ts";
import { must } from "#lib/assert.ts";
import { checkSession } from "#strategies/types/http.ts";
import { loginTypes } from "#strategies/registry.ts";
import { openJar } from "#strategies/http/session-jar.ts";
import { PORTAL_ACCOUNTS } from "../../examples/portal/accounts.ts";
import { startPortal } from "../../examples/portal/portal.ts";
import { CANARY, startTarget, type Seen } from "../outbound/targets.ts";
import { assertLoginFails, findings, logIn, loginContext } from "./login-context.ts";

const codeStep: JsonObject = {
  request: { method: "POST", url: "/otp", form: { code: "{{ $credential.totp.code }}" } },
  expect: { status: [302] },
  extract: { welcome: { header: "x-welcome" } },
};

const acceptCode =
  (right: string) =>
  (seen: Seen, response: ServerResponse): void =>
    void response
      .writeHead(seen.body === `code=${right}` ? 302 : 401, { location: "/", "x-welcome": "hi" })
      .end();

test("a rejected one-time code is tried once more with a fresh one", async (t) => {
  const target = await startTarget(t, acceptCode("222222"));
  const codes = ["111111", "222222", "333333"];
  const credential = { totp: CANARY };
  await logIn(
    t,
    "http",
    { steps: [codeStep], session: { headers: { "x-w": "{{ $welcome }}" } } },
    { hosts: [target.origin], credential, codes },
  );
  assert.deepEqual(
    target.seen.map(({ body }) => body),
    ["code=111111", "code=222222"],
  );
  assert.deepEqual(codes, ["333333"]);
});

test("two rejected one-time codes fail the login; a third is not sent", async (t) => {
  const target = await startTarget(t, acceptCode("333333"));
  const login = logIn(
    t,
    "http",
    { steps: [codeStep] },
    { hosts: [target.origin], credential: { totp: CANARY }, codes: ["111111", "222222", "333333"] },
  );
  await assertLoginFails(login, /^login step 1 \(POST \/otp\): expected status 302, got 401$/);
  assert.equal(target.seen.length, 2);
});

test("a step without a one-time code is sent once, and so is one whose extract finds nothing", async (t) => {
  const target = await startTarget(t, acceptCode("111111"));
  const password: JsonObject = {
    request: { method: "POST", url: "/otp", form: { code: "{{ $credential.password }}" } },
    expect: { status: [302] },
  };
  await assertLoginFails(logIn(t, "http", { steps: [password] }, { hosts: [target.origin] }), /got 401/);
  assert.equal(target.seen.length, 1);
  const nothing: JsonObject = { ...codeStep, extract: { welcome: { header: "x-none" } } };
  await assertLoginFails(
    logIn(
      t,
      "http",
      { steps: [nothing] },
      { hosts: [target.origin], credential: { totp: "s" }, codes: ["111111", "222222"] },
    ),
    /found nothing/,
  );
  assert.equal(target.seen.length, 2);
});

const guarded = (seen: Seen, response: ServerResponse): void => {
  if (seen.url === "/login")
    response.writeHead(200, { "set-cookie": "sid=1; Path=/", "x-key": CANARY }).end();
  else
    response
      .writeHead(seen.headers.cookie === "sid=1" && seen.headers["x-key"] === CANARY ? 200 : 401, {
        "x-body": CANARY,
      })
      .end();
};
const checked: JsonObject = {
  steps: [{ request: { url: "/login" }, extract: { key: { header: "x-key" } } }],
  check: { request: { url: "/api/me" }, expect: { status: [200] } },
  session: { headers: { "X-Key": "{{ $key }}" } },
};

test("the check is sent after the login with the session's cookies and headers, and fails the login when it fails", async (t) => {
  const target = await startTarget(t, guarded);
  const session = await logIn(t, "http", checked, { hosts: [target.origin] });
  assert.equal(target.seen.length, 2);
  assert.deepEqual(session.headers, { "x-key": CANARY });
  const { session: _headers, ...without } = checked;
  await assertLoginFails(
    logIn(t, "http", without, { hosts: [target.origin] }),
    /^login check \(GET \/api\/me\): expected status 200, got 401$/,
  );
});

test("the check tests a cached session by itself: well, logged out, unreachable", async (t) => {
  const target = await startTarget(t, guarded);
  const session = await logIn(t, "http", checked, { hosts: [target.origin] });
  const cached = JSON.parse(JSON.stringify(session)) as typeof session;
  const before = target.seen.length;
  await checkSession(loginContext(t, { hosts: [target.origin], session: cached }), checked);
  assert.equal(target.seen.length, before + 1);
  for (const other of [
    { headers: {}, cookies: cached.cookies },
    { headers: cached.headers, cookies: null },
  ]) {
    await assertLoginFails(
      checkSession(loginContext(t, { hosts: [target.origin], session: other }), checked),
      /^login check \(GET \/api\/me\): expected status 200, got 401$/,
    );
  }
  await assert.rejects(
    checkSession(loginContext(t, { hosts: ["http://127.0.0.3:1"], session: cached }), checked),
    OutboundError,
  );
  const { check: _check, ...without } = checked;
  const sent = target.seen.length;
  await checkSession(loginContext(t, { hosts: [target.origin], session: cached }), without);
  assert.equal(target.seen.length, sent, "without a check nothing is sent");
});

test("an aborted login ends as cancelled, also while a page is read", async (t) => {
  const controller = new AbortController();
  const target = await startTarget(t, (seen, response) => {
    if (seen.url === "/evil") {
      response.end("<div>".repeat(100_000));
      setTimeout(() => controller.abort(), 500);
    }
  });
  const isCancelled = (error: unknown) => error instanceof OutboundError && error.failure === "cancelled";
  const reading = logIn(
    t,
    "http",
    { steps: [{ request: { url: "/evil" }, extract: { x: { css: "p" } } }] },
    { hosts: [target.origin], signal: controller.signal },
  );
  await assert.rejects(reading, isCancelled);
  const waiting = logIn(
    t,
    "http",
    { steps: [{ request: { url: "/silent" } }] },
    { hosts: [target.origin], signal: AbortSignal.timeout(100) },
  );
  await assert.rejects(waiting, isCancelled);
});

test("the example strategy logs in to the example portal, with and without one-time codes, and is told when the password is wrong", async (t) => {
  const portal = await startPortal({ port: 0 });
  t.after(() => portal.close());
  const document = parse(
    readFileSync(new URL("../../examples/strategies/northwind-portal.yaml", import.meta.url), "utf8"),
  ) as { login: JsonObject };
  const { type: _type, cache: _cache, ...config } = document.login;
  for (const { username, password, totpSecret } of PORTAL_ACCOUNTS) {
    const credential = { username, password, ...(totpSecret === null ? {} : { totp: totpSecret }) };
    const session = await logIn(t, "http", config, {
      hosts: [portal.url],
      credential,
      codes: codesOf(totpSecret),
    });
    assert.ok(openJar(session.cookies).cookieHeader(portal.url));
    await checkSession(loginContext(t, { hosts: [portal.url], session }), config);
  }
  const wrong = logIn(t, "http", config, {
    hosts: [portal.url],
    credential: { username: "demo", password: CANARY },
  });
  await assertLoginFails(wrong, /^login step 2 \(POST \/login\): expected status 302, got 200$/);
});

function codesOf(totpSecret: string | null): string[] {
  if (totpSecret === null) return [];
  const parsed = parseTotpSecret(totpSecret);
  assert.ok(parsed.ok);
  return [totpCode(parsed.secret, Date.now()).code];
}

test("apply refuses reserved and malformed extract names, and extracts that are none or several", () => {
  const extract = (extracts: JsonObject) =>
    findings("http", { steps: [{ request: { url: "/" }, extract: extracts }] });
  for (const name of [
    "credential",
    "inputs",
    "metadata",
    "run",
    "index",
    "isValid",
    "errors",
    "counts",
    "nodes",
    "token",
  ]) {
    assert.deepEqual(extract({ [name]: { css: "a" } }), [
      `steps.0.extract.${name}: \`${name}\` is a reserved variable; choose another name`,
    ]);
  }
  assert.match(extract({ "a-b": { css: "a" } })[0] ?? "", /not a variable name/);
  for (const none of [{}, { css: "a", regex: "b" }, { required: false }])
    assert.match(extract({ x: none })[0] ?? "", /exactly one of/);
  assert.match(extract({ x: { json: "a", attr: "b" } })[0] ?? "", /`attr` needs `css`/);
  assert.match(extract({ x: { css: "a", group: 1 } })[0] ?? "", /`group` needs `regex`/);
  assert.match(extract({ x: { css: "a[[" } })[0] ?? "", /not a CSS selector/);
  assert.match(extract({ x: { regex: "a(?=b)" } })[0] ?? "", /not an RE2 regular expression/);
  assert.match(extract({ x: { regex: "(a)", group: 2 } })[0] ?? "", /has 1 group$/);
  assert.match(extract({ x: { css: "a", kind: "b" } })[0] ?? "", /schema/);
});

test("apply refuses requests that can't be: two bodies, a body without a method, a host in an expression, a header of the connection", () => {
  const request = (more: JsonObject) => findings("http", { steps: [{ request: { url: "/", ...more } }] });
  assert.match(
    request({ method: "POST", json: 1, form: {} })[0] ?? "",
    /^steps\.0\.request\.form: a request has one body; keep only one of `json`, `form`$/,
  );
  assert.match(request({ form: { a: "b" } })[0] ?? "", /needs a `method`/);
  assert.match(request({ method: "GET", text: "a" })[0] ?? "", /a GET request has no body/);
  assert.match(request({ method: "TRACE" })[0] ?? "", /schema/);
  assert.match(request({ url: "https://{{ $credential.username }}.example/" })[0] ?? "", /the host of a URL/);
  assert.match(request({ url: "https://u:p@portal.example/" })[0] ?? "", /user name or password/);
  assert.match(request({ headers: { Host: "evil.example" } })[0] ?? "", /belongs to the connection/);
  assert.match(
    findings("http", {
      steps: [{ request: { url: "/" } }],
      check: { request: { url: "/", headers: { "transfer-encoding": "x" } } },
    })[0] ?? "",
    /^check\.request\.headers/,
  );
  assert.match(
    findings("http", { steps: [{ request: { url: "/" } }], session: { headers: { connection: "x" } } })[0] ??
      "",
    /^session\.headers\.connection/,
  );
  assert.match(findings("http", { steps: [] })[0] ?? "", /schema/);
});

test("the names that steps extract are known to apply, also of a broken document", () => {
  const http = must(loginTypes.get("http"), "http");
  assert.deepEqual(http.extracts?.({ steps: [{ extract: { a: {}, b: {} } }, {}, { extract: { a: {} } }] }), [
    "a",
    "b",
  ]);
  for (const broken of [{}, { steps: 1 }, { steps: [1, null, { extract: [] }] }] as JsonObject[])
    assert.deepEqual(http.extracts?.(broken), []);
});
