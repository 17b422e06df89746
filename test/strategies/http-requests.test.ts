import assert from "node:assert/strict";
import { test } from "node:test";
import { OutboundError } from "#domain/http-exchange.ts";
import type { JsonObject } from "#domain/json.ts";
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
  await fails({ url: "{{ $credential.none }}" }, "x", /request\.url gives no text/);
  await fails(
    { url: "/a", headers: { "X-P": "{{ $credential.password }}" } },
    `${CANARY}\r\nx-evil: 1`,
    /the header X-P has characters/,
  );
  await fails(
    { url: "/a", query: { q: "{{ {'a': $credential.password} }}" } },
    CANARY,
    /request\.query\.q gives an object/,
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
