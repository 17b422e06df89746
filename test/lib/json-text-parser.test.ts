import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JsonTextError, parseJsonText, writeJsonText } from "#lib/json-text.ts";

const BOUNDS = { depthMax: 64, valuesMax: 250_000 };

test("What JSON.parse accepts is accepted and means the same; what it refuses is refused", () => {
  const check = (text: string): void => {
    let expected: unknown;
    let isGood = true;
    try {
      expected = JSON.parse(text);
    } catch {
      isGood = false;
    }
    if (isGood) assert.deepEqual(JSON.parse(writeJsonText(parseJsonText(text, BOUNDS))), expected, text);
    else assert.throws(() => parseJsonText(text, BOUNDS), JsonTextError, text);
  };
  for (const text of [
    "",
    " ",
    "[1,]",
    "[,1]",
    "{,}",
    '{"a":1,}',
    "[1 2]",
    "01",
    "-",
    "+1",
    "1.",
    ".5",
    "1e",
    "1e+",
    "--1",
    "tru",
    "truex",
    "nul",
    '"\t"',
    '"\\x"',
    '"\\u12"',
    '"',
    '"\\',
    "[",
    "{",
    '{"a"',
    '{"a":',
    "{a:1}",
    "{1:1}",
    "[]]",
    "{}{}",
    "\ufeff{}",
    "\u00a0{}",
    "'a'",
    "[1]x",
    "NaN",
    "Infinity",
    "0x1",
    "1_0",
    " [ 1 , { } , [ ] ] ",
    '{"__proto__":1,"a":{}}',
    '{"a":1,"a":2}',
    "-0",
    "1E400",
    "0.10",
    "\u2028",
    '"\u2028"',
    '"\\/\\b"',
    "\v1",
    "[\f1]",
  ])
    check(text);
  fc.assert(
    fc.property(fc.json(), (text) => check(text)),
    { numRuns: 500 },
  );
  // One character changed somewhere.
  fc.assert(
    fc.property(
      fc.json(),
      fc.nat(),
      fc.constantFrom("", ",", "]", "}", '"', "\\", "0", "-", ".", "e", " ", "\u0001", "a", ":"),
      (text, at, by) => {
        const index = at % (text.length + 1);
        check(text.slice(0, index) + by + text.slice(index + 1));
      },
    ),
    { numRuns: 2_000 },
  );
});

test("Names keep their order, digits stay as written, of a repeated name the last value counts", () => {
  const text = '{"b":9007199254740993,"10":1.0,"2":1e400,"b":-0,"__proto__":[true,null]}';
  assert.equal(
    writeJsonText(parseJsonText(text, BOUNDS)),
    '{"b":-0,"10":1.0,"2":1e400,"__proto__":[true,null]}',
  );
});
