import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { load } from "cheerio";
import {
  account,
  codeNow,
  csrfOf,
  openPortal,
  postCode,
  postPassword,
  signedInVisitor,
  visit,
} from "./portal-visitor.ts";

/** Holds the clock still, so that no time step ends in the middle of a test. */
function holdClock(t: TestContext): void {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
}

test("an account without a second factor signs in with its password alone", async (t) => {
  const { url } = await openPortal(t);
  const visitor = visit(url);
  const answer = await postPassword(visitor, "demo", account("demo").password);
  assert.deepEqual([answer.status, answer.headers.get("location")], [302, "/invoices"]);
  const me = await visitor.get("/api/me");
  assert.deepEqual([me.status, await me.json()], [200, { username: "demo", name: "Dana Demo" }]);
});

test("an account with a second factor is signed in only after its code", async (t) => {
  const { url } = await openPortal(t);
  const { username, password, totpSecret } = account("demo-totp");
  const visitor = visit(url);
  const answer = await postPassword(visitor, username, password);
  assert.deepEqual([answer.status, answer.headers.get("location")], [302, "/login/otp"]);
  assert.equal((await visitor.get("/api/me")).status, 401, "the password alone opens nothing");
  assert.equal((await visitor.get("/invoices")).headers.get("location"), "/login");

  const code = await postCode(visitor, codeNow(totpSecret));
  assert.deepEqual([code.status, code.headers.get("location")], [302, "/invoices"]);
  assert.equal((await visitor.get("/api/me")).status, 200);
});

test("codes of the neighbouring time steps are accepted, older ones are not", async (t) => {
  holdClock(t);
  const { url } = await openPortal(t);
  const { username, password, totpSecret } = account("demo-totp");
  for (const [steps, status] of [
    [-1, 302],
    [1, 302],
    [-3, 200],
    [3, 200],
  ] as const) {
    const visitor = visit(url);
    await postPassword(visitor, username, password);
    assert.equal(
      (await postCode(visitor, codeNow(totpSecret, steps))).status,
      status,
      `${steps} steps from now`,
    );
  }
});

test("a one-time code is accepted once, and its replay does not count as a wrong try", async (t) => {
  holdClock(t);
  const { url } = await openPortal(t);
  const { username, password, totpSecret } = account("demo-totp");
  const code = codeNow(totpSecret);
  const first = visit(url);
  await postPassword(first, username, password);
  assert.equal((await postCode(first, code)).status, 302);

  const second = visit(url);
  await postPassword(second, username, password);
  for (let replay = 0; replay < 6; replay += 1) {
    const answer = await postCode(second, code);
    assert.equal(answer.status, 200);
    assert.match(await answer.text(), /already used/);
  }
  assert.equal((await second.get("/api/me")).status, 401);
  assert.equal((await postCode(second, codeNow(totpSecret, 1))).status, 302, "the next code still works");
});

test("a form without its token, with another visitor's token or without a session is refused", async (t) => {
  const { url } = await openPortal(t);
  const { username, password, totpSecret } = account("demo-totp");
  const [visitor, other] = [visit(url), visit(url)];
  const foreign = await csrfOf(other, "/login");
  const own = await csrfOf(visitor, "/login");
  assert.notEqual(own, foreign);
  assert.equal((await visitor.post("/login", { username, password })).status, 403);
  assert.equal((await visitor.post("/login", { username, password, _csrf: foreign })).status, 403);
  assert.equal((await visit(url).post("/login", { username, password, _csrf: own })).status, 403);
  assert.equal((await visitor.post("/login", { username, password, _csrf: own })).status, 302);

  const code = codeNow(totpSecret);
  assert.equal(
    (await visitor.post("/login/otp", { code, _csrf: own })).status,
    403,
    "the login form's token is not the code form's",
  );
  assert.equal((await postCode(visitor, code)).status, 302, "a refused form does not use up the code");
  assert.equal((await visitor.post("/logout", {})).status, 403);
});

test("a wrong password shows the form again; after five the account is locked, for the right password too", async (t) => {
  const { url } = await openPortal(t);
  const visitor = visit(url);
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const answer = await postPassword(visitor, "demo", "not it");
    assert.equal(answer.status, 200);
    assert.match(await answer.text(), /Wrong username or password/);
  }
  const locked = await postPassword(visitor, "demo", account("demo").password);
  assert.equal(locked.status, 423);
  assert.match(await locked.text(), /Account locked/);
  const other = await postPassword(visitor, "demo-totp", account("demo-totp").password);
  assert.equal(other.status, 302, "other accounts are not touched");
});

test("the right password in between forgives wrong ones, unless a code is still to come", async (t) => {
  holdClock(t);
  const { url } = await openPortal(t);
  const demo = account("demo");
  for (let round = 0; round < 2; round += 1) {
    for (let attempt = 0; attempt < 4; attempt += 1) await postPassword(visit(url), "demo", "not it");
    assert.equal((await postPassword(visit(url), "demo", demo.password)).status, 302);
  }
  const { username, password, totpSecret } = account("demo-totp");
  const wrongCode = codeNow(totpSecret, 1_000);
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const visitor = visit(url);
    await postPassword(visitor, username, password);
    assert.equal((await postCode(visitor, wrongCode)).status, 200);
  }
  assert.equal(
    (await postPassword(visit(url), username, password)).status,
    423,
    "codes can't be guessed by signing in again",
  );
});

test("the session id changes at every stage, is HttpOnly and SameSite=Lax, and the old one is worthless", async (t) => {
  const { url } = await openPortal(t);
  const { username, password, totpSecret } = account("demo-totp");
  const visitor = visit(url);
  const ids: string[] = [];
  const keep = async () => {
    const [cookie] = await visitor.jar.getCookies(url);
    assert.ok(cookie);
    assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, "lax"]);
    ids.push(cookie.cookieString());
  };
  await visitor.get("/login");
  await keep();
  await postPassword(visitor, username, password);
  await keep();
  await postCode(visitor, codeNow(totpSecret));
  await keep();
  assert.equal(new Set(ids).size, 3);
  const statuses = await Promise.all(
    ids.map(async (cookie) => (await fetch(`${url}/api/me`, { headers: { cookie } })).status),
  );
  assert.deepEqual(statuses, [401, 401, 200]);
  // The session of the code page is gone: its cookie shows no code form any more.
  const stale = await fetch(`${url}/login/otp`, { headers: { cookie: ids[1] ?? "" }, redirect: "manual" });
  assert.deepEqual([stale.status, stale.headers.get("location")], [302, "/login"]);
});

test("signing out, and time, end a session", async (t) => {
  const { url } = await openPortal(t, { sessionIdleMs: 1_000 });
  const visitor = await signedInVisitor(url);
  const out = await visitor.post("/logout", { _csrf: await csrfOf(visitor, "/invoices") });
  assert.deepEqual([out.status, out.headers.get("location")], [302, "/login"]);
  assert.equal((await visitor.get("/api/me")).status, 401);

  const idle = await signedInVisitor(url);
  assert.equal((await idle.get("/api/me")).status, 200);
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  assert.equal((await idle.get("/api/me")).status, 401);
});

test("without a session pages lead to the login and the API answers 401 in JSON", async (t) => {
  const { url } = await openPortal(t);
  for (const path of ["/invoices", "/invoices?page=2", "/invoices.csv"]) {
    const answer = await visit(url).get(path);
    assert.deepEqual([answer.status, answer.headers.get("location")], [302, "/login"], path);
  }
  for (const path of ["/api/me", "/api/invoices"]) {
    const answer = await visit(url).get(path);
    assert.equal(answer.status, 401, path);
    assert.match(answer.headers.get("content-type") ?? "", /^application\/json/);
  }
});

test("what a visitor typed comes back escaped", async (t) => {
  const { url } = await openPortal(t);
  const answer = await postPassword(visit(url), '"><script>alert(1)</script>', "x");
  const $ = load(await answer.text());
  assert.equal($("script").length, 0);
  assert.equal($("#username").attr("value"), '"><script>alert(1)</script>');
  assert.equal($("#password").attr("value"), undefined);
});

test("fault switches: every n-th API request fails with 503, and answers can be delayed", async (t) => {
  const { url } = await openPortal(t, { failEvery: 3, delayMs: 60 });
  const visitor = await signedInVisitor(url);
  const statuses: number[] = [];
  const began = performance.now();
  for (let request = 0; request < 7; request += 1) statuses.push((await visitor.get("/api/me")).status);
  assert.deepEqual(statuses, [200, 200, 503, 200, 200, 503, 200]);
  assert.ok(performance.now() - began >= 7 * 55, "each answer waited");
  assert.equal((await visitor.get("/invoices")).status, 200, "pages don't fail");
});

test("the list of requests shows method, path and status, at most 1,000, and nothing that was sent", async (t) => {
  const { url, requests } = await openPortal(t);
  const visitor = await signedInVisitor(url);
  await visitor.get("/api/invoices?from=2025-01-01");
  assert.deepEqual(requests, [
    { method: "GET", path: "/login", status: 200 },
    { method: "POST", path: "/login", status: 302 },
    { method: "GET", path: "/api/invoices", status: 200 },
  ]);
  for (let request = 0; request < 1_010; request += 1) await visitor.get("/style.css");
  assert.equal(requests.length, 1_000);
  assert.ok(requests.every((one) => one.path === "/style.css"));
});

test("unreadable requests and unknown pages get a page, and JSON under /api", async (t) => {
  const { url } = await openPortal(t);
  const missing = await visit(url).get("/nowhere");
  assert.equal(missing.status, 404);
  assert.match(missing.headers.get("content-type") ?? "", /^text\/html/);
  const api = await visit(url).get("/api/nowhere");
  assert.equal(api.status, 404);
  assert.match(api.headers.get("content-type") ?? "", /^application\/json/);
  const odd = await fetch(`${url}/login`, {
    method: "POST",
    body: "<x/>",
    headers: { "content-type": "application/xml" },
  });
  assert.equal(odd.status, 415);
  const large = await fetch(`${url}/login`, {
    method: "POST",
    body: new URLSearchParams({ username: "x".repeat(20_000) }),
  });
  assert.equal(large.status, 413);
});
