import assert from "node:assert/strict";
import { test } from "node:test";
import { ThreadPlaces } from "#lib/thread-places.ts";

const never = new AbortController().signal;
const settled = async (promise: Promise<unknown>): Promise<boolean> =>
  await Promise.race([
    promise.then(
      () => true,
      () => true,
    ),
    new Promise<boolean>((resolve) => setImmediate(() => resolve(false))),
  ]);

test("what takes long leaves its place to what has not begun, and there are few such places", async () => {
  const places = new ThreadPlaces();
  const [one, two] = await Promise.all([places.take("quick", {}, never), places.take("quick", {}, never)]);
  const third = places.take("quick", {}, never);
  assert.equal(await settled(third), false);
  assert.equal(one.becomeSlow(), true);
  const three = await third;
  assert.equal(two.becomeSlow(), true);
  assert.equal(three.becomeSlow(), false, "two take long already");
  three.release();
  const again = places.take("slow", {}, never);
  assert.equal(await settled(again), false);
  one.release();
  assert.equal((await again).lane, "slow");
});

test("an owner of many jobs has one at a time, and others pass them", async () => {
  const places = new ThreadPlaces();
  const run = {};
  const first = await places.take("quick", run, never);
  const more = Array.from({ length: 3 }, async () => await places.take("quick", run, never));
  const other = await places.take("quick", {}, never);
  assert.equal(await settled(Promise.race(more)), false);
  first.release();
  first.release();
  const second = await Promise.race(more);
  other.release();
  assert.equal(await settled(Promise.all(more)), false);
  second.release();
});

test("who is stopped while waiting waits no more, and takes nobody's place", async () => {
  const places = new ThreadPlaces();
  const held = await Promise.all([places.take("quick", {}, never), places.take("quick", {}, never)]);
  const stop = new AbortController();
  const stopped = places.take("quick", {}, stop.signal);
  const next = places.take("quick", {}, never);
  stop.abort(new Error("run cancelled"));
  await assert.rejects(stopped, /run cancelled/);
  held[0]?.release();
  assert.equal((await next).lane, "quick");
});
