import assert from "node:assert/strict";
import { test } from "node:test";
import { openJar } from "#strategies/http/session-jar.ts";

test("loopback, IP hosts and localhost keep their cookies, Secure ones on loopback too, apart from each other", () => {
  for (const origin of [
    "http://127.0.0.1:4600",
    "http://[::1]:4600",
    "http://localhost:4600",
    "http://app.localhost",
    "http://192.0.2.7",
    "https://portal.test",
  ]) {
    const jar = openJar();
    jar.absorb(`${origin}/login`, ["sid=1; Path=/; HttpOnly", "csrf=2; Path=/; SameSite=Strict"]);
    assert.equal(jar.cookieHeader(`${origin}/api`), "sid=1; csrf=2", origin);
    assert.equal(jar.cookieHeader("https://other.example/"), undefined);
  }
  const local = openJar();
  local.absorb("http://127.0.0.1:4600/", ["sid=1; Secure"]);
  assert.equal(local.cookieHeader("http://127.0.0.1:4600/"), "sid=1");
});

test("path, domain, Secure and expiry are respected; a cookie for a public suffix or a foreign domain is refused", () => {
  const jar = openJar();
  jar.absorb(new URL("https://a.example.com/x/y"), [
    "host=1",
    "wide=2; Domain=example.com; Path=/",
    "sub=3; Path=/x",
    "safe=4; Secure; Path=/",
    "gone=5; Max-Age=0",
    "suffix=6; Domain=com; Path=/",
    "foreign=7; Domain=evil.example; Path=/",
    "",
    "=;;;",
    `long=${"a".repeat(9_000)}`,
  ]);
  assert.equal(jar.cookieHeader("https://a.example.com/x/z"), "host=1; sub=3; wide=2; safe=4");
  assert.equal(jar.cookieHeader("https://b.example.com/"), "wide=2");
  assert.equal(jar.cookieHeader("http://b.example.com/"), "wide=2");
  assert.equal(jar.cookieHeader("https://com/"), undefined);
  assert.equal(jar.cookieHeader("https://evil.example/"), undefined);
});

test("a serialised jar is plain JSON and goes on where it was", () => {
  const jar = openJar();
  jar.absorb("http://127.0.0.1:4600/", [
    "sid=1; Path=/",
    "later=2; Path=/; Expires=Fri, 01 Jan 2100 00:00:00 GMT",
  ]);
  const again = openJar(JSON.parse(JSON.stringify(jar.serialise())));
  assert.equal(again.cookieHeader("http://127.0.0.1:4600/x"), "sid=1; later=2");
  again.absorb("http://127.0.0.1:4600/", ["sid=new; Path=/"]);
  assert.equal(again.cookieHeader("http://127.0.0.1:4600/"), "sid=new; later=2");
  assert.equal(openJar(null).cookieHeader("http://127.0.0.1:4600/"), undefined);
});

test("a cookie's value is found by name: the one of the URL first, else one of another path", () => {
  const jar = openJar();
  jar.absorb("http://127.0.0.1:4600/", [
    "token=here; Path=/",
    "token=app; Path=/app",
    "other=app; Path=/app",
  ]);
  assert.equal(jar.value("token", "http://127.0.0.1:4600/login"), "here");
  assert.equal(jar.value("token", "http://127.0.0.1:4600/app/x"), "app");
  assert.equal(jar.value("other", "http://127.0.0.1:4600/login"), "app");
  assert.equal(jar.value("none", "http://127.0.0.1:4600/"), undefined);
});

test("of one domain 50 cookies are kept, in all 3,000, as RFC 6265 asks: over it the jar says which limit", () => {
  const lines = (count: number, more = ""): string[] =>
    Array.from({ length: count }, (_each, index) => `c${index}=${index}; Path=/${more}`);
  const jar = openJar();
  assert.equal(jar.absorb("https://a.example.com/", lines(50)).length, 50);
  jar.absorb("https://a.example.com/", lines(50));
  jar.absorb("https://a.example.com/", lines(50, "; Domain=example.com"));
  assert.equal(jar.overflow, null);
  jar.absorb("https://a.example.com/", ["other=1; Path=/"]);
  assert.match(jar.overflow ?? "", /^a\.example\.com set more than 50 cookies/);

  const all = openJar();
  for (let host = 0; host < 60; host++) all.absorb(`https://h${host}.example.com/`, lines(50));
  assert.equal(all.overflow, null);
  all.absorb("https://h60.example.com/", ["one=1; Path=/"]);
  assert.equal(all.overflow, "the target set more than 3000 cookies in all");

  const once = openJar();
  assert.ok(
    once.absorb("https://a.example.com/", lines(1_200)).length <= 100,
    "no more is read than it takes to know",
  );
  assert.notEqual(once.overflow, null);
});
