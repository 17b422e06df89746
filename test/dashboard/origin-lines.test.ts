// What an admin types into the account's form is checked before the second factor is asked for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readOrigins } from "../../ui/pages/origin-lines.ts";

test("origins are read one per line, without empty lines", () => {
  assert.deepEqual(readOrigins("https://app.example.com\n\n  http://localhost:3000 \n"), {
    origins: ["https://app.example.com", "http://localhost:3000"],
  });
  assert.deepEqual(readOrigins(""), { origins: [] });
});

test("a line that is no origin is named by its number", () => {
  for (const wrong of [
    "https://app.example.com/path",
    "app.example.com",
    "ftp://files.example.com",
    "https://a b",
  ]) {
    const read = readOrigins(`https://one.example\nhttps://two.example\n${wrong}`);
    assert.match("problem" in read ? read.problem : "", /^Line 3: /, wrong);
  }
});
