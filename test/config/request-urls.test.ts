import assert from "node:assert/strict";
import { test } from "node:test";
import { checkCredentialUrls, checkPublicUrls, findRequestUrls } from "#actions/config/check-request-urls.ts";

const HOSTS = ["https://portal.example", "http://localhost:3000"];
const credential = (url: string) =>
  checkCredentialUrls([{ path: ["url"], url }], HOSTS, "it").map(({ message }) => message.split(";")[0]);
const open = (url: string) =>
  checkPublicUrls([{ path: ["url"], url }], HOSTS).map(({ message }) => message.split(";")[0]);

test("URLs inside the hosts, relative ones, and those that an expression decides are left to the egress gate", () => {
  for (const url of [
    "/a",
    "a/b",
    "?q=1",
    "/a/{{ $x }}",
    "a/{{ $x }}",
    "https://portal.example",
    "https://PORTAL.example:443/a",
    "http://localhost:3000/{{ $x }}",
    "{{ $url }}",
    "https://portal.example{{ $x }}",
  ]) {
    assert.deepEqual(credential(url), [], url);
  }
});

test("whatever leads to another origin is refused, however it is written", () => {
  const urls = [
    "https://evil.example/a",
    "http://portal.example/a",
    "https://portal.example:8443/",
    "//evil.example/a",
    "/\\evil.example",
    "https:\\\\evil.example\\{{ $x }}",
    "https://portal.example@evil.example/",
    "https://portal.example.evil.example/{{ $x }}",
  ];
  for (const url of urls) {
    assert.equal(credential(url).length, 1, url);
    assert.match(credential(url)[0] ?? "", /is not among the `hosts` of it$/, url);
    assert.match(open(url)[0] ?? "", /is not among the Blueprint's own `hosts`$/, url);
  }
  assert.deepEqual(credential("javascript:alert(1)"), ["`javascript:alert(1)` is not a URL"]);
  assert.deepEqual(credential("https://"), ["`https://` is not a URL"]);
});

test("without a credential a relative URL leads nowhere", () => {
  for (const url of ["/a", "a", "/a/{{ $x }}", "a/{{ $x }}"])
    assert.deepEqual(open(url), ["a node without a `credential` needs an absolute URL"], url);
  for (const url of ["{{ $url }}", "https://portal.example/{{ $x }}"]) assert.deepEqual(open(url), [], url);
});

test("a strategy without hosts lets nothing be sent", () => {
  assert.match(
    checkCredentialUrls([{ path: ["url"], url: "/a" }], [], "it")[0]?.message ?? "",
    /^it has no `hosts`/,
  );
});

test("a `url` inside a request's own parts is data, not where the request goes", () => {
  const login = {
    steps: [{ request: { url: "/a", json: { request: { url: "https://data.example" }, url: "x" } } }],
    check: { request: { url: "/b" } },
  };
  assert.deepEqual(findRequestUrls(login, ["login"]), [
    { path: ["login", "steps", 0, "request", "url"], url: "/a" },
    { path: ["login", "check", "request", "url"], url: "/b" },
  ]);
});
