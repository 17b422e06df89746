import assert from "node:assert/strict";
import { test } from "node:test";
import {
  withoutSessionQuery,
  withoutSessionQueryHeaders,
  withSessionQuery,
} from "#engine/login/session-query.ts";

const QUERY = [
  ["api_key", "k &=ö"],
  ["shop", "n"],
] as const;
const KEY = "api_key=k+%26%3D%C3%B6&shop=n";
const sent = (url: string): string => withSessionQuery(new URL(url), QUERY).href;

test("parameters are added behind what a request has, to the byte, and replace their own names", () => {
  assert.equal(sent("https://a.example/x"), `https://a.example/x?${KEY}`);
  assert.equal(sent("https://a.example/x?q=a%20b+c&&q=%7e"), `https://a.example/x?q=a%20b+c&q=%7e&${KEY}`);
  assert.equal(
    sent("https://a.example/x?api_key=own&q=1&api%5Fkey=own#f"),
    `https://a.example/x?q=1&${KEY}#f`,
  );
  const own = new URL("https://a.example/x?q=1");
  withSessionQuery(own, QUERY);
  assert.equal(own.href, "https://a.example/x?q=1");
});

test("an address that repeats them loses them, and nothing else", () => {
  for (const [given, left] of [
    [`https://a.example/x?${KEY}`, "https://a.example/x"],
    [`/x?${KEY}#part`, "/x#part"],
    [`/x?page=2&${KEY}&z=%20`, "/x?page=2&z=%20"],
    ["/x?api%5fkey=secret", "/x"],
    ["/x?my_api_key=1", "/x?my_api_key=1"],
    ["/x", "/x"],
  ] as const) {
    assert.equal(withoutSessionQuery(given, QUERY), left);
  }
});

test("so do the headers that hold addresses", () => {
  const headers = new Map([
    ["location", `/next?${KEY}`],
    ["link", `<https://a.example/i?page=2&${KEY}>; rel="next", <https://a.example/i?${KEY}>; rel="first"`],
    ["refresh", `5; url=/x?${KEY}`],
    ["content-type", "text/plain"],
  ]);
  assert.deepEqual(
    [...withoutSessionQueryHeaders(headers, QUERY).values()],
    [
      "/next",
      '<https://a.example/i?page=2>; rel="next", <https://a.example/i>; rel="first"',
      "5; url=/x",
      "text/plain",
    ],
  );
});
