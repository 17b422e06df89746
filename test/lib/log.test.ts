import assert from "node:assert/strict";
import { test } from "node:test";
import { describeError } from "#lib/log.ts";

test("of an unexpected error the log shows class, code and place, and nothing of what it says", () => {
  const message = "secret-1\n    at secret-2 (secret-3)\n    at secret-4";
  const odd = Object.assign(new TypeError(message, { cause: "secret-5" }), {
    code: "secret 6 with spaces",
    detail: "secret-7",
  });
  const described = describeError(odd);
  assert.equal(described.error, "TypeError");
  assert.match(described.at ?? "", /log\.test\.ts:\d+:\d+/);
  assert.doesNotMatch(JSON.stringify(described), /secret/);
  class Named extends Error {
    override readonly name = "secret 8";
  }
  assert.deepEqual(describeError(new Named("secret-9")).error, "Error");
  assert.match(describeError(new Error("")).at ?? "", /log\.test\.ts/);
  assert.equal(describeError(Object.assign(new Error("x"), { code: "ERR_X" })).code, "ERR_X");
  assert.deepEqual(describeError("secret-10"), { error: "string" });
});
