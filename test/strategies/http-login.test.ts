import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { OutboundError } from "#domain/http-exchange.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { openJar } from "#strategies/http/session-jar.ts";
import { CANARY, startTarget, type Seen } from "../outbound/targets.ts";
import { assertLoginFails, logIn } from "./login-context.ts";

const page =
  '<!doctype html><form><input name=_csrf value="tok&amp;1"><p class="who"> Dana <b>Demo</b> </p></form>';

/** Answers by path; what is not listed is 404. */
const routes =
  (answers: { readonly [path: string]: (response: ServerResponse, seen: Seen) => void }) =>
  (seen: Seen, response: ServerResponse): void => {
    const answer = answers[seen.url.split("?")[0] ?? ""];
    if (answer === undefined) response.writeHead(404).end("not here");
    else answer(response, seen);
  };

const html = (response: ServerResponse) => void response.setHeader("content-type", "text/html").end(page);
const json = (value: unknown) => (response: ServerResponse) =>
  void response.setHeader("content-type", "application/json").end(JSON.stringify(value));

/** Posts the variables of earlier steps to /show, so that the test sees what they hold. */
const show = (names: readonly string[]): JsonObject => ({
  request: {
    method: "POST",
    url: "/show",
    json: Object.fromEntries(names.map((name) => [name, `{{ $${name} }}`])),
  },
});
const shown = (seen: readonly Seen[]): Json =>
  JSON.parse(seen.find(({ url }) => url === "/show")?.body ?? "null") as Json;

test("a form login: the token of the page, the cookies of every step, a redirect that is expected, session headers", async (t) => {
  const target = await startTarget(t, (seen, response) => {
    if (seen.method === "GET") response.writeHead(200, { "set-cookie": "visit=1; Path=/" }).end(page);
    else
      response
        .writeHead(302, { location: "/home", "set-cookie": "sid=abc; Path=/; HttpOnly", "x-token": "t0" })
        .end();
  });
  const config = {
    steps: [
      { request: { url: "/login" }, extract: { csrf: { css: "input[name=_csrf]", attr: "value" } } },
      {
        request: {
          method: "POST",
          url: "/login",
          form: {
            username: "{{ $credential.username }}",
            password: "{{ $credential.password }}",
            _csrf: "{{ $csrf }}",
          },
        },
        expect: { status: [200, 302], not_text: "Wrong" },
        extract: { bearer: { header: "X-Token" } },
      },
    ],
    session: { headers: { "X-Token": "v={{ $bearer }}", "X-Empty": "{{ $nothing }}" } },
  };
  const session = await logIn(t, "http", config, {
    hosts: [target.origin],
    credential: { username: "zoë", password: "p&=+ w" },
  });
  assert.deepEqual(session.headers, { "x-token": "v=t0" });
  assert.equal(openJar(session.cookies).cookieHeader(`${target.origin}/api`), "visit=1; sid=abc");
  assert.equal(target.seen.length, 2, "the redirect is not followed");
  const posted = target.seen[1];
  assert.equal(posted?.headers.cookie, "visit=1");
  assert.equal(posted?.headers["content-type"], "application/x-www-form-urlencoded");
  assert.deepEqual(Object.fromEntries(new URLSearchParams(posted?.body)), {
    username: "zoë",
    password: "p&=+ w",
    _csrf: "tok&1",
  });
});

test("every kind of extract finds its value, and gives it to later steps", async (t) => {
  const target = await startTarget(
    t,
    routes({
      "/page": (response) => {
        response
          .setHeader("set-cookie", ["XSRF-TOKEN=x%2F1; Path=/", "deep=d; Path=/app"])
          .setHeader("X-Request-Id", "r-7");
        html(response);
      },
      "/json": json({ data: { token: "j-1", ids: [1, 2], none: null }, expires: 3600 }),
      "/show": (response) => response.end(),
    }),
  );
  const config: JsonObject = {
    steps: [
      {
        request: { url: "/page" },
        extract: {
          attribute: { css: "input[name=_csrf]", attr: "value" },
          words: { css: ".who" },
          whole: { regex: "Da\\w+" },
          grouped: { regex: 'name=(\\w+) value="([^"]+)"' },
          second: { regex: 'name=(\\w+) value="([^"]+)"', group: 2 },
          zeroth: { regex: "D(e)mo", group: 0 },
          header: { header: "x-REQUEST-id" },
          cookie: { cookie: "XSRF-TOKEN" },
          deep: { cookie: "deep" },
          optional_css: { css: "#none", required: false },
          optional_regex: { regex: "none(x)?", required: false },
          optional_header: { header: "x-none", required: false },
          optional_cookie: { cookie: "none", required: false },
        },
      },
      {
        request: { url: "/json" },
        extract: {
          text: { json: "data.token" },
          object: { json: "data" },
          sum: { json: "$sum(data.ids) + expires" },
          earlier: { json: "data.token & '-' & $attribute" },
          optional_json: { json: "data.none", required: false },
        },
      },
      show([
        "attribute",
        "words",
        "whole",
        "grouped",
        "second",
        "zeroth",
        "header",
        "cookie",
        "deep",
        "text",
        "object",
        "sum",
        "earlier",
        "optional_css",
        "optional_regex",
        "optional_header",
        "optional_cookie",
        "optional_json",
      ]),
    ],
  };
  await logIn(t, "http", config, { hosts: [target.origin] });
  assert.deepEqual(shown(target.seen), {
    attribute: "tok&1",
    words: "Dana Demo",
    whole: "Dana",
    grouped: "_csrf",
    second: "tok&amp;1",
    zeroth: "Demo",
    header: "r-7",
    cookie: "x%2F1",
    deep: "d",
    text: "j-1",
    object: { token: "j-1", ids: [1, 2], none: null },
    sum: 3603,
    earlier: "j-1-tok&1",
  });
});

test("an extract that finds nothing fails the login and names the step and itself, never a value", async (t) => {
  const target = await startTarget(t, routes({ "/page": html, "/json": json({ secret: CANARY }) }));
  const fails = (extract: JsonObject, url: string, message: RegExp) =>
    assertLoginFails(
      logIn(
        t,
        "http",
        { steps: [{ request: { url: "/page" } }, { request: { url }, extract: { csrf: extract } }] },
        { hosts: [target.origin] },
      ),
      message,
    );
  await fails(
    { css: "input[name=other]", attr: "value" },
    "/page",
    /^login step 2 \(GET \/page\): extract csrf found nothing \(css `input\[name=other\]`, attr `value`\)$/,
  );
  await fails({ css: "input[name=_csrf]", attr: "none" }, "/page", /extract csrf found nothing/);
  await fails(
    { json: "none" },
    "/json",
    /^login step 2 \(GET \/json\): extract csrf found nothing \(json `none`\)$/,
  );
  await fails({ json: "none" }, "/page", /extract csrf found nothing/);
  await fails({ regex: "x{40}" }, "/page", /extract csrf found nothing \(regex `x\{40\}`\)/);
  await fails({ header: "X-None" }, "/page", /extract csrf found nothing \(header `X-None`\)/);
  await fails({ cookie: "none" }, "/page", /extract csrf found nothing \(cookie `none`\)/);
  await fails(
    { json: "$number(secret)" },
    "/json",
    /^login step 2 \(GET \/json\): extract csrf: the expression `\$number\(secret\)` failed$/,
  );
});

test("every kind of expect fails the login when it is not met, and names the step as the document writes it", async (t) => {
  const target = await startTarget(
    t,
    routes({
      "/401": (response) => response.writeHead(401, { "x-secret": CANARY }).end(CANARY),
      "/302": (response) => response.writeHead(302, { location: `/${CANARY}` }).end(),
      "/many": (response) => response.end(`[${"0,".repeat(1_000_000)}0]`),
      "/ok": json({ ok: false, who: CANARY }),
      "/page": html,
    }),
  );
  const step = (url: string, expect: JsonObject | undefined, request: JsonObject = {}): JsonObject => ({
    steps: [{ request: { url, ...request }, ...(expect === undefined ? {} : { expect }) }],
  });
  const fails = (config: JsonObject, message: RegExp) =>
    assertLoginFails(logIn(t, "http", config, { hosts: [target.origin] }), message);
  await fails(
    step("/401", { status: [200, 204, 302] }, { method: "POST", form: { p: "{{ $credential.password }}" } }),
    /^login step 1 \(POST \/401\): expected status 200, 204 or 302, got 401$/,
  );
  await fails(
    step("/401", { status: [200] }, { query: { p: "{{ $credential.password }}" } }),
    /^login step 1 \(GET \/401\): expected status 200, got 401$/,
  );
  await fails(step("/401", undefined), /expected status 200 to 299, got 401$/);
  await fails(
    step("/302", undefined),
    /expected status 200 to 299, got 302 \(a redirect: list it in `expect\.status`, or set `follow: true`\)$/,
  );
  await fails(
    step("/{{ $credential.password }}", undefined),
    /^login step 1 \(GET \/\{\{ \$credential\.password \}\}\): expected status 200 to 299, got 404$/,
  );
  await fails(step("/page", { text: "Welcome" }), /expected text `Welcome` is not in the response$/);
  await fails(step("/page", { not_text: "Demo" }), /the response contains `Demo`$/);
  await fails(step("/ok", { json: "ok" }), /expected `ok` to be true$/);
  await fails(step("/ok", { json: "none" }), /expected `none` to be true$/);
  await fails(step("/ok", { json: "who" }), /expect\.json must evaluate to true or false/);
  await fails(
    step("/ok", { json: "$number(who) = 1" }),
    /expect\.json: the expression `\$number\(who\) = 1` failed$/,
  );
  await fails(step("/page", { json: "true" }), /expected a JSON response$/);
  await fails(step("/many", { json: "true" }), /the response has more than 1000000 values$/);
});

test("met expects let the login go on", async (t) => {
  const target = await startTarget(
    t,
    routes({
      "/ok": json({ ok: true, who: "dana" }),
      "/403": (response) => response.writeHead(403).end("but fine"),
    }),
  );
  const config: JsonObject = {
    steps: [
      {
        request: { url: "/ok" },
        expect: { text: "dana", not_text: "Wrong", json: "ok and who = $credential.username" },
      },
      { request: { url: "/403" }, expect: { status: [403], text: "fine" } },
    ],
  };
  assert.deepEqual((await logIn(t, "http", config, { hosts: [target.origin] })).headers, {});
});

test("a step is skipped unless its `when` is true; what it extracts stays unknown", async (t) => {
  const target = await startTarget(t, routes({ "/page": html, "/show": (response) => response.end() }));
  const config = (when: string): JsonObject => ({
    steps: [
      { request: { url: "/page" }, extract: { first: { regex: "Dana" } } },
      { when, request: { url: "/page" }, extract: { second: { regex: "Demo" } } },
      show(["first", "second"]),
    ],
  });
  for (const [when, isDone] of [
    ["$exists($credential.totp)", false],
    ["$exists($credential.password)", true],
    ["$first = 'Dana'", true],
    ["$none", false],
  ] as const) {
    const before = target.seen.length;
    await logIn(t, "http", config(when), { hosts: [target.origin] });
    assert.equal(target.seen.length - before, isDone ? 3 : 2, when);
    assert.deepEqual(
      shown(target.seen.slice(before)),
      isDone ? { first: "Dana", second: "Demo" } : { first: "Dana" },
    );
  }
  const text = logIn(t, "http", config("$credential.password"), { hosts: [target.origin] });
  await assertLoginFails(text, /^login step 2 \(GET \/page\): when must evaluate to true or false/);
});

test("redirects are followed inside the hosts when a step says so, with the cookies of every hop", async (t) => {
  const target = await startTarget(
    t,
    routes({
      "/start": (response) =>
        response.writeHead(302, { location: "/middle", "set-cookie": "a=1; Path=/" }).end(),
      "/middle": (response, seen) =>
        response
          .writeHead(303, { location: `/end?${seen.headers.cookie}`, "set-cookie": "b=2; Path=/" })
          .end(),
      "/end": (response, seen) => response.end(`${seen.url} ${seen.headers.cookie}`),
      "/out": (response) => response.writeHead(302, { location: `http://127.0.0.2:1/${CANARY}` }).end(),
      "/show": (response) => response.end(),
    }),
  );
  const config: JsonObject = {
    steps: [
      {
        request: { method: "POST", url: "/start", text: "x" },
        follow: true,
        expect: { text: "/end" },
        extract: { where: { regex: ".*" } },
      },
      show(["where"]),
    ],
  };
  const session = await logIn(t, "http", config, { hosts: [target.origin] });
  assert.deepEqual(shown(target.seen), { where: "/end?a=1 a=1; b=2" });
  assert.equal(openJar(session.cookies).cookieHeader(target.origin), "a=1; b=2");
  const outside = logIn(
    t,
    "http",
    { steps: [{ request: { url: "/out" }, follow: true }] },
    { hosts: [target.origin] },
  );
  await assert.rejects(
    outside,
    (error: unknown) =>
      error instanceof OutboundError &&
      error.failure === "redirect_outside" &&
      !error.message.includes(CANARY),
  );
});
