import assert from "node:assert/strict";
import { test } from "node:test";
import { HANDLE_PREFIX, REDACTED, withHandlesOf, withoutHandlesIn } from "#domain/handle-text.ts";
import type { Json } from "#domain/json.ts";

const handle = (digit: number): string => HANDLE_PREFIX + String(digit).repeat(40);
const BEFORE: Json = { token: `t ${handle(1)}`, rows: [{ csrf: handle(2), n: 1 }, handle(3)] };
const SHOWN: Json = { token: `t ${REDACTED}`, rows: [{ csrf: REDACTED, n: 1 }, REDACTED] };

test("what an operator leaves as it is shown gets its handles back, in objects and lists too", () => {
  assert.deepEqual(withoutHandlesIn(BEFORE), SHOWN);
  assert.deepEqual(withHandlesOf(BEFORE, SHOWN), BEFORE);
});

test("what an operator changes, adds or puts elsewhere has no handle", () => {
  const edited: Json = {
    token: "mine",
    rows: [{ csrf: REDACTED, n: 2 }, REDACTED, REDACTED],
    more: REDACTED,
  };
  assert.deepEqual(withHandlesOf(BEFORE, edited), {
    token: "mine",
    rows: [{ csrf: handle(2), n: 2 }, handle(3), REDACTED],
    more: REDACTED,
  });
  assert.deepEqual(withHandlesOf(BEFORE, { rows: { 0: REDACTED } }), { rows: { 0: REDACTED } });
  assert.deepEqual(withHandlesOf("text", { token: REDACTED }), { token: REDACTED });
});

test("a key `__proto__` is a key like any other", () => {
  const edited = JSON.parse(`{"__proto__": {"polluted": true}}`) as Json;
  const result = withHandlesOf({}, edited);
  assert.equal(JSON.stringify(result), JSON.stringify(edited));
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
});
