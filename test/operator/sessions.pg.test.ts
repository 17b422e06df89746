// docs/decisions/0022: sessions end, and forged requests change nothing.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { openBrowser, sendPlain } from "./browser.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";

let stage: OperatorStage;

before(async () => {
  stage = await openOperatorStage();
});

after(async () => await stage?.[Symbol.asyncDispose]());

// Each test has names and sessions of its own; what earlier ones were throttled for is not what it is about.
beforeEach(async () => {
  await stage.db.query("delete from operator_throttle");
  await stage.moveClock("0");
});

describe("sessions", () => {
  test("end after half an hour without use, and after twelve hours in any case, by the database's clock", async () => {
    const { browser } = await stage.signedIn();
    await stage.moveClock("29 minutes");
    assert.equal((await browser.send("GET", "/me")).status, 200);
    await stage.moveClock("58 minutes");
    assert.equal((await browser.send("GET", "/me")).status, 200, "that was a use");
    await stage.moveClock("89 minutes");
    assert.equal((await browser.send("GET", "/me")).status, 401);
    const busy = await stage.signedIn();
    await stage.db.query("update operator_session set seen_at = app_now() + interval '13 hours'");
    await stage.moveClock("13 hours 29 minutes");
    assert.equal((await busy.browser.send("GET", "/me")).status, 401);
  });

  test("nobody signs in into a session that was there before, and the old one ends", async () => {
    const { browser, email, password } = await stage.signedIn();
    const before = browser.cookie;
    assert.equal((await browser.signIn(email, password)).status, 201);
    assert.notEqual(browser.cookie, before);
    const fixed = openBrowser(stage.service.url);
    fixed.cookie = before;
    assert.equal((await fixed.send("GET", "/me")).status, 401);
    fixed.cookie = `latchkey_operator=${"A".repeat(43)}`;
    await fixed.signIn(email, password);
    assert.notEqual(fixed.cookie, `latchkey_operator=${"A".repeat(43)}`);
  });

  test("two cookies of the name are none", async () => {
    const { browser } = await stage.signedIn();
    browser.cookie = `${browser.cookie}; latchkey_operator=${"A".repeat(43)}`;
    assert.equal((await browser.send("GET", "/me")).status, 401);
  });

  test("one's own are listed and ended one by one; another operator's is none", async () => {
    const first = await stage.signedIn();
    const second = openBrowser(stage.service.url);
    await second.signIn(first.email, first.password);
    const stranger = await stage.signedIn();
    const list = await first.browser.send("GET", "/me/sessions");
    assert.equal(list.body.items.length, 2);
    const other = list.body.items.find((each: any) => !each.is_this);
    assert.equal((await stranger.browser.send("DELETE", `/me/sessions/${other.id}`)).status, 404);
    assert.equal((await first.browser.send("DELETE", `/me/sessions/${other.id}`)).status, 204);
    assert.equal((await second.send("GET", "/me")).status, 401);
    assert.equal((await first.browser.send("GET", "/me")).status, 200);
  });
});

describe("forged requests", () => {
  test("change nothing: from another origin, another site, without the value, or with another session's", async () => {
    const { browser, email } = await stage.signedIn();
    const other = await stage.signedIn();
    const attempts: readonly Readonly<Record<string, string>>[] = [
      { Origin: "https://evil.example" },
      { Origin: "null" },
      { "Sec-Fetch-Site": "cross-site" },
      { "Sec-Fetch-Site": "same-site" },
      { "X-CSRF-Token": "" },
      { "X-CSRF-Token": other.browser.csrf },
    ];
    for (const headers of attempts) {
      const answer = await browser.send("DELETE", "/session", undefined, headers);
      assert.deepEqual(
        [answer.status, answer.body.error.details[0].code],
        [403, "csrf"],
        JSON.stringify(headers),
      );
    }
    assert.equal((await browser.send("GET", "/me")).body.email, email, "still there");
    assert.equal((await browser.send("DELETE", "/session")).status, 204);
  });

  test("a sign-in from elsewhere is refused, and a form can't make one", async () => {
    const { email, password } = await stage.operator();
    const url = `${stage.service.url}/operator/v1/session`;
    const form = `email=${encodeURIComponent(email)}&password=${password}`;
    const type = "application/x-www-form-urlencoded";
    const simple = await sendPlain(
      url,
      "POST",
      { "Content-Type": type, "Content-Length": String(form.length) },
      form,
    );
    assert.equal(simple.status, 403);
    const foreign = await openBrowser(stage.service.url).send(
      "POST",
      "/session",
      { email, password },
      {
        Origin: "https://evil.example",
      },
    );
    assert.equal(foreign.status, 403);
    const preflight = await sendPlain(url, "OPTIONS", { Origin: "https://evil.example" });
    assert.equal(preflight.headers["access-control-allow-origin"], undefined);
  });
});

test("what a body or a query has too many, or of another kind, is named and nothing is done", async () => {
  const browser = openBrowser(stage.service.url);
  const answer = await browser.send("POST", "/session", { email: 5, password: "x", role: "admin" });
  assert.equal(answer.status, 422);
  assert.deepEqual(answer.body.error.details.map(({ field }: any) => field).toSorted(), ["email", "role"]);
  const { browser: own } = await stage.signedIn();
  const query = await own.send("GET", "/me?role=admin");
  assert.deepEqual([query.status, query.body.error.details[0].field], [422, "role"]);
  assert.equal((await own.send("GET", "/no-such-thing")).status, 404);
});
