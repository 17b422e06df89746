import { test } from "node:test";
import assert from "node:assert/strict";
import type { JsonObject } from "#domain/json.ts";
import { check } from "./node-context.ts";

const http = (request: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: "http", request, ...rest });
const refusal = (document: JsonObject) =>
  check(document).map(({ path, message }) => `${path.join(".")}: ${message}`);

test("check: keys and values that there are not are refused, and a body where none can be", () => {
  assert.match(refusal(http({ url: "/" }, { save: "x" }))[0] ?? "", /schema/);
  assert.deepEqual(refusal(http({ url: "/" }, { save: "file" })), []);
  for (const [key, value] of [
    ["multipart", {}],
    ["file", "a"],
  ] as const)
    assert.match(
      refusal(http({ url: "/", [key]: value }))[0] ?? "",
      new RegExp(`^request.${key}: a GET request has no body`),
    );
  assert.deepEqual(refusal(http({ url: "/", method: "DELETE" }, { effect: "read" })), []);
  assert.match(
    refusal(http({ url: "/" }, { parse: { format: "xlsx", delimiter: ";" } }))[0] ?? "",
    /^parse.delimiter: .*not a key of the format xlsx/,
  );
  assert.match(refusal(http({ url: "/" }, { recods: "x" }))[0] ?? "", /schema/);
});

test("check: the host part of a url holds no expression, no login and no other scheme", () => {
  const fine = [
    "/",
    "/a/{{ x }}",
    "a/b",
    "a/{{ x }}",
    "https://h.example/{{ x }}",
    "https://h.example?a={{ x }}",
    "{{ $inputs.url }}",
    "/{{ {'a': '}}'}.a }}",
    "?a={{ x }}",
  ];
  for (const url of fine) assert.deepEqual(refusal(http({ url })), [], url);
  const wrong = [
    ...[
      "https://{{ x }}/",
      "https://a.{{ x }}.example/",
      "https://h.example{{ x }}",
      "https://h.example:{{ x }}/",
      "{{ x }}/a",
      "{{ x }}{{ y }}",
      "a{{ x }}",
    ],
    ...[
      "//h.example/",
      "\\\\h.example",
      "ftp://h.example/",
      "javascript:x",
      "data:,x",
      "https://u:p@h.example/",
      "https://{{ x }}@h.example/",
      "/a b",
      "/{{ x",
    ],
    ...["https:h.example/{{ x }}", "/a\n"],
  ];
  for (const url of wrong) assert.match(refusal(http({ url })).join(), /^request.url: /, url);
});

test("check: one body, none for GET, and no header that the service or the login sets", () => {
  const first = (request: JsonObject, rest: JsonObject = {}) =>
    refusal(http({ url: "/", ...request }, rest))[0] ?? "";
  assert.match(
    first({ method: "POST", json: {}, text: "x" }, { effect: "read" }),
    /^request.text: a request has only one body/,
  );
  assert.match(first({ json: {} }), /^request.json: a GET request has no body/);
  for (const name of ["Host", "Content-Length", "transfer-encoding", "Connection", "Cookie"])
    assert.match(first({ headers: { [name]: "x" } }), /can't set/);
  assert.match(first({ headers: { "a b": "x" } }), /not a valid header name/);
  assert.match(first({ headers: { "x-a": "1", "X-A": "2" } }), /listed twice/);
  assert.match(first({ headers: { "x-a": "1\r\nb: 2" } }), /line breaks/);
  assert.match(first({ headers: { Authorization: "x" } }, { credential: "portal" }), /has a credential/);
  assert.equal(first({ headers: { Authorization: "x" } }), "");
});

test("check: paginate has one kind, with its own keys, and only records can be paginated", () => {
  const first = (paginate: JsonObject, rest: JsonObject = { records: "$" }) =>
    refusal(http({ url: "/" }, { paginate, ...rest }))[0] ?? "";
  assert.match(first({}), /exactly one/);
  assert.match(first({ page: 1, offset: 0, param: "p" }), /exactly one/);
  assert.match(first({ page: 1 }), /needs `param`/);
  assert.match(first({ link_header: true, param: "p" }), /`param` is not allowed/);
  assert.match(first({ link_header: false }), /schema/);
  assert.match(first({ page: 1, param: "p", size: 3 }), /is only for `offset`/);
  assert.match(first({ offset: 0, param: "p", size_param: "n" }), /size/);
  assert.match(first({ page: 1, param: "p", max_pages: 0 }), /schema/);
  assert.match(first({ page: 1, param: "p" }, {}), /only records can be paginated/);
  assert.match(first({ cursor: "c", param: "p" }, { parse: { format: "csv" } }), /read from a JSON body/);
  assert.match(refusal(http({ url: "/" }, { records: "$", parse: { format: "json" } }))[0] ?? "", /one of/);
  for (const paginate of [
    { page: 0, param: "p" },
    { offset: 0, param: "p", size: 9, size_param: "n" },
    { link_header: true },
    { cursor: "a.b", param: "p" },
  ]) {
    assert.equal(first(paginate), "");
  }
});

test("check: the keys of writes and of for_each stand where they mean something", () => {
  const verify = { request: { url: "/" }, when: "true" };
  const write = (rest: JsonObject) => refusal(http({ url: "/", method: "POST" }, rest));
  assert.deepEqual(write({ verify, on_unknown: "fail", for_each: "a", concurrency: 20 }), []);
  assert.deepEqual(refusal(http({ url: "/" }, { verify })), [
    "verify: `verify` is only for writes, and this node reads",
  ]);
  assert.deepEqual(refusal(http({ url: "/" }, { on_unknown: "fail" })), [
    "on_unknown: `on_unknown` is only for writes, and this node reads",
  ]);
  assert.deepEqual(refusal(http({ url: "/" }, { concurrency: 2 })), [
    "concurrency: `concurrency` belongs to `for_each`",
  ]);
  assert.match(write({ for_each: "a", concurrency: 21 })[0] ?? "", /schema/);
  assert.match(
    write({ records: "$", paginate: { page: 1, param: "p" } }).join(),
    /a write can't be paginated/,
  );
  assert.match(write({ parse: { format: "csv" } }).join(), /read as JSON/);
  assert.match(
    write({ verify: { request: { url: "/", json: {} }, when: "true" } }).join(),
    /verify.request.json: a GET request has no body/,
  );
  for (const per of ["0s", "2h", "x", 3]) {
    assert.match(
      refusal(http({ url: "/" }, { throttle: { requests: 1, per } })).join(),
      /1ms to 1h/,
      String(per),
    );
  }
});
