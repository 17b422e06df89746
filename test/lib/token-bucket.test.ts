import assert from "node:assert/strict";
import { test } from "node:test";
import { TokenBuckets } from "#lib/token-bucket.ts";

const RATE = { perSecond: 10, burst: 20 };

test("a bucket allows its burst at once, then its rate", () => {
  let now = 0;
  const buckets = new TokenBuckets(() => now);
  for (let index = 0; index < 20; index++) assert.equal(buckets.take("key", RATE).allowed, true);
  assert.deepEqual(buckets.take("key", RATE), { allowed: false, remaining: 0, retryAfterSeconds: 1 });
  now += 100;
  assert.equal(buckets.take("key", RATE).allowed, true);
  assert.equal(buckets.take("key", RATE).allowed, false);
});

test("a refused request costs nothing, and buckets of other names are untouched", () => {
  let now = 0;
  const buckets = new TokenBuckets(() => now);
  for (let index = 0; index < 500; index++) buckets.take("greedy", RATE);
  assert.equal(buckets.take("other", RATE).remaining, 19);
  now += 1_000;
  let allowed = 0;
  for (let index = 0; index < 50; index++) if (buckets.take("greedy", RATE).allowed) allowed++;
  assert.equal(allowed, 10);
});

test("a bucket never holds more than its burst", () => {
  let now = 0;
  const buckets = new TokenBuckets(() => now);
  buckets.take("key", RATE);
  now += 3_600_000;
  assert.equal(buckets.take("key", RATE).remaining, 19);
});

test("asking whether a token is there takes none", () => {
  const buckets = new TokenBuckets(() => 0);
  for (let index = 0; index < 100; index++) assert.equal(buckets.has("key", RATE), true);
  assert.equal(buckets.take("key", RATE).remaining, 19);
});

test("each store has room of its own: a flood of addresses makes no key and no operator forgotten", () => {
  const buckets = new TokenBuckets(() => 0);
  for (let taken = 0; taken < 20; taken++) buckets.take("calls/key", RATE);
  for (let index = 0; index < 25_000; index++) buckets.take(`address/${index}`, RATE);
  assert.equal(buckets.has("calls/key", RATE), false);
  assert.equal(buckets.has("address/24999", { perSecond: 10, burst: 1 }), true);
});

test("processes that serve the same callers allow a rate together, each its part", () => {
  let nowMs = 0;
  const parts = Array.from({ length: 3 }, () => new TokenBuckets(() => nowMs, 3));
  const takeAll = (): number => {
    let taken = 0;
    for (const buckets of parts)
      while (buckets.take("key/one", { perSecond: 30, burst: 100 }).allowed) taken++;
    return taken;
  };
  assert.equal(takeAll(), 99);
  nowMs = 1_000;
  assert.equal(takeAll(), 30);
});
