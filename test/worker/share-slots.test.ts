import assert from "node:assert/strict";
import { test } from "node:test";
import { shareSlots } from "#worker/share-slots.ts";

const shares = (free: number, accounts: readonly string[], active: Record<string, number> = {}) =>
  Object.fromEntries(shareSlots(free, accounts, new Map(Object.entries(active))));

test("free slots go to the accounts that have the fewest, one by one", () => {
  assert.deepEqual(shares(10, ["a"]), { a: 10 });
  assert.deepEqual(shares(10, ["a", "b"]), { a: 5, b: 5 });
  assert.deepEqual(shares(5, ["a", "b"]), { a: 3, b: 2 });
  assert.deepEqual(shares(4, ["a", "b"], { a: 8, b: 1 }), { b: 4 });
  assert.deepEqual(shares(10, ["a", "b"], { a: 8, b: 1 }), { a: 1, b: 9 });
  assert.deepEqual(shares(3, ["a", "b", "c"], { c: 2 }), { a: 2, b: 1 });
});

test("where there are fewer slots than accounts, those whose turn it is get one", () => {
  assert.deepEqual(shares(2, ["a", "b", "c"]), { a: 1, b: 1 });
  assert.deepEqual(shares(0, ["a", "b"]), {});
  assert.deepEqual(shares(3, []), {});
});
