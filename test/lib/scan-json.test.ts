// Every reader of JSON in bytes goes by where a string ends.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { endOfString, isEscaped } from "#lib/scan-json.ts";

/** One character after the other. */
function endByHand(text: string, from: number, last: number): number {
  for (let at = from; at < last; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at;
  }
  return -1;
}

test("a string ends at the first quote that is not escaped, however long it is and wherever reading stops", () => {
  const part = fc.constantFrom("\\", '"', "a", "\\\\", '\\"', "a".repeat(30), "\\".repeat(31));
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), fc.nat(40), fc.nat(200), (parts, from, length) => {
      const text = parts.join("");
      const bytes = Buffer.from(text);
      const last = Math.min(from + length, bytes.length);
      assert.equal(endOfString(bytes, from), endByHand(text, from, bytes.length), text);
      assert.equal(endOfString(bytes, from, last), endByHand(text, from, last), text);
    }),
    { numRuns: 2_000 },
  );
});

test("what stands behind an odd number of backslashes is escaped, and what is before the string counts for nothing", () => {
  const bytes = Buffer.from('\\\\\\"');
  assert.deepEqual(
    [0, 1, 2, 3].map((at) => isEscaped(bytes, at, 0)),
    [false, true, false, true],
  );
  assert.equal(isEscaped(bytes, 3, 3), false);
  assert.equal(isEscaped(bytes, 3, 1), false);
});
