import assert from "node:assert/strict";
import { test } from "node:test";
import { OutboundError } from "#domain/http-exchange.ts";
import type { JsonObject } from "#domain/json.ts";
import { freePort } from "../free-port.ts";
import { CANARY, startTarget } from "../outbound/targets.ts";
import { assertLoginFails, logIn } from "./login-context.ts";

test("query, headers, json, form and text are templates at any depth; what gives nothing is left out", async (t) => {
  const target = await startTarget(t, (_seen, response) => response.end());
  const credential = { username: "a/../b?c#d", password: "p" };
  const config: JsonObject = {
    steps: [
      {
        request: {
          method: "PUT",
          url: "/of/{{ $credential.username }}?fixed=1",
          query: {
            q: "{{ $credential.password }}",
            none: "{{ $nothing }}",
            list: ["a", "b"],
            flag: true,
            nil: null,
          },
          headers: { "X-P": "is {{ $credential.password }}", "X-None": "{{ $nothing }}" },
          json: {
            deep: [{ p: "{{ $credential.password }}" }],
            number: "{{ 1 + 1 }}",
            none: "{{ $nothing }}",
            nil: null,
          },
        },
      },
      {
        request: {
          method: "POST",
          url: "/form",
          headers: { "Content-Type": "application/x-own" },
          form: { list: ["a", "b"], n: 1, none: "{{ $nothing }}", nil: null },
        },
      },
      { request: { method: "POST", url: "{{ '/whole' & '?a=b' }}", text: "p={{ $credential.password }}" } },
    ],
  };
  await logIn(t, "http", config, { hosts: [target.origin], credential });
  const [put, form, text] = target.seen;
  assert.equal(put?.url, "/of/a%2F..%2Fb%3Fc%23d?fixed=1&q=p&list=a&list=b&flag=true");
  assert.equal(put?.headers["x-p"], "is p");
  assert.equal(put?.headers["x-none"], undefined);
  assert.equal(put?.headers["content-type"], "application/json");
  assert.deepEqual(JSON.parse(put?.body ?? ""), { deep: [{ p: "p" }], number: 2, nil: null });
  assert.equal(form?.body, "list=a&list=b&n=1");
  assert.equal(form?.headers["content-type"], "application/x-own");
  assert.equal(
    `${text?.url} ${text?.headers["content-type"]} ${text?.body}`,
    "/whole?a=b text/plain;charset=utf-8 p=p",
  );
});

test("a value can't climb out of its path segment, name another host or begin a header", async (t) => {
  const target = await startTarget(t, (_seen, response) => response.end());
  const fails = (request: JsonObject, password: string, message: RegExp) =>
    assertLoginFails(
      logIn(t, "http", { steps: [{ request }] }, { hosts: [target.origin], credential: { password } }),
      message,
    );
  await fails({ url: "/a/{{ $credential.password }}/b" }, "..", /path segment/);
  await fails({ url: "{{ $credential.none }}" }, "x", /request\.url must evaluate to a string/);
  await fails(
    { url: "/a", headers: { "X-P": "{{ $credential.password }}" } },
    `${CANARY}\r\nx-evil: 1`,
    /the header X-P has characters/,
  );
  await fails(
    { url: "/a", query: { q: "{{ {'a': $credential.password} }}" } },
    CANARY,
    /request\.query\.q evaluates to an object/,
  );
  const outside = logIn(
    t,
    "http",
    { steps: [{ request: { url: "{{ $credential.password }}" } }] },
    { hosts: [target.origin], credential: { password: "//127.0.0.2:1/" } },
  );
  await assert.rejects(
    outside,
    (error: unknown) => error instanceof OutboundError && error.failure === "refused",
  );
  assert.equal(target.seen.length, 0);
});

test("pages that are built to stall the parser fail their logins and keep no other one waiting", async (t) => {
  const target = await startTarget(t, (seen, response) =>
    response.end(seen.url === "/evil" ? "<div>".repeat(100_000) : '<p class="who">Dana</p>'),
  );
  const config = (url: string): JsonObject => ({
    steps: [{ request: { url }, extract: { who: { css: ".who" } } }],
  });
  let ticks = 0;
  const ticker = setInterval(() => ticks++, 50);
  const cpuBefore = process.cpuUsage();
  let over = 0;
  const evil = Array.from({ length: 3 }, async () => {
    await assertLoginFails(
      logIn(t, "http", config("/evil"), { hosts: [target.origin] }),
      /limits of time and memory/,
    );
    over++;
  });
  const all = Promise.all(evil);
  all.catch(() => undefined);
  // Behind all of them: with two threads and nothing else, two would be over when it is read.
  await logIn(t, "http", config("/page"), { hosts: [target.origin] });
  assert.ok(over <= 1, `${over} were over`);
  await all;
  clearInterval(ticker);
  const { user, system } = process.cpuUsage(cpuBefore);
  assert.ok(user + system < 40e6, `${user + system} µs`);
  assert.ok(ticks > 20, `${ticks} ticks`);
  await logIn(t, "http", config("/page"), { hosts: [target.origin] });
});

test("a login step is tried again, as a read is, until something of the credential was sent", async (t) => {
  const answers: Record<string, number[]> = {};
  const target = await startTarget(t, ({ url }, response) => {
    const status = answers[url]?.shift() ?? 200;
    if (status === 0) response.destroy();
    else response.writeHead(status, status === 503 ? { "retry-after": "7" } : {}).end("welcome");
  });
  const page: JsonObject = { request: { url: "/page" } };
  const password: JsonObject = {
    request: { method: "POST", url: "/in", form: { p: "{{ $credential.password }}" } },
  };
  const attempt = async (given: Record<string, number[]>, steps = [page, password]) => {
    const config: JsonObject = { steps, check: { request: { url: "/me" } } };
    const before = target.seen.length;
    Object.assign(answers, { "/page": [], "/in": [], "/after": [], "/me": [], ...given });
    const slept: number[] = [];
    const failure = await logIn(t, "http", config, { hosts: [target.origin], slept }).then(
      () => null,
      (error: Error) => error.message,
    );
    return { failure, slept, asked: target.seen.slice(before).map(({ url }) => url) };
  };
  const moment = await attempt({ "/page": [503, 0], "/me": [502] });
  assert.equal(moment.failure, null);
  assert.deepEqual(moment.asked, ["/page", "/page", "/page", "/in", "/me", "/me"]);
  // No less than the target asked for.
  assert.equal(moment.slept[0], 7_000);

  const long = await attempt({ "/page": [503, 503, 503] });
  assert.match(long.failure ?? "", /^login step 1 \(GET \/page\): expected status 200 to 299, got 503$/);
  assert.equal(long.asked.length, 3);

  for (const status of [503, 0]) {
    const counted = await attempt({ "/in": [status] });
    assert.notEqual(counted.failure, null);
    assert.deepEqual(counted.asked, ["/page", "/in"], "a password is sent once");
    const after = await attempt({ "/after": [status] }, [page, password, { request: { url: "/after" } }]);
    assert.deepEqual(after.asked, ["/page", "/in", "/after"], "nor anything after it twice");
  }
  const wanted = await attempt({ "/page": [503] }, [{ ...page, expect: { status: [503] } }, password]);
  assert.deepEqual([wanted.failure, wanted.asked], [null, ["/page", "/in", "/me"]], "it is what is expected");
});

test("a login whose target can't be reached is tried again: nothing was sent", async (t) => {
  const slept: number[] = [];
  const hosts = [`http://127.0.0.1:${await freePort()}`];
  const config: JsonObject = {
    steps: [{ request: { method: "POST", url: "/in", form: { p: "{{ $credential.password }}" } } }],
  };
  await assert.rejects(logIn(t, "http", config, { hosts, slept }), { failure: "unreachable" });
  assert.equal(slept.length, 2);
});
