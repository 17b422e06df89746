import assert from "node:assert/strict";
import { test } from "node:test";
import { countDelimiters } from "#api/count-parts.ts";

const count = (chunks: readonly string[]): number => {
  const delimiters = countDelimiters("xyz");
  for (const chunk of chunks) delimiters.add(Buffer.from(chunk));
  return delimiters.count;
};

test("delimiters are counted wherever the chunks of a body end", () => {
  for (const [body, expected] of [
    ["--xyz\r\n\r\na\r\n--xyz\r\n\r\nb\r\n--xyz--\r\n", 3],
    ["preamble\r\n--xyz\r\n\r\n--xy\r\n-xyz\r\n--xyz--", 2],
    ["\r\n--xyz--", 1],
    ["--xyz--", 1],
    ["a--xyz\n--xyz\r--xyz", 0],
    ["", 0],
  ] as const) {
    assert.equal(count([body]), expected, body);
    assert.equal(count(Array.from(body)), expected, `${body}, byte by byte`);
    for (let at = 0; at <= body.length; at++) {
      assert.equal(count([body.slice(0, at), body.slice(at)]), expected, `${body}, cut at ${at}`);
      assert.equal(count([body.slice(0, at), "", body.slice(at, at + 3), body.slice(at + 3)]), expected);
    }
  }
});
