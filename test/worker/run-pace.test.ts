// docs/webhooks.md#how-soon: when a worker is busy, and when events take slots from its runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RunPace } from "#worker/run-pace.ts";

function begin(pace: RunPace, runs: number, fromMs: number): void {
  for (let run = 0; run < runs; run++) pace.note(fromMs + (900 * run) / runs);
}

test("a worker is busy while it begins more runs a second than it has slots, and a moment after", () => {
  const pace = new RunPace(300);
  assert.equal(pace.isBusy(0), false);
  begin(pace, 300, 0);
  assert.equal(pace.isBusy(950), false);
  begin(pace, 301, 1_000);
  assert.equal(pace.isBusy(1_950), true);
  assert.equal(pace.isBusy(2_500), true);
  assert.equal(pace.isBusy(3_100), false);
});

test("runs that keep their slots for long, or are few, make no worker busy", () => {
  const few = new RunPace(2);
  begin(few, 200, 0);
  assert.equal(few.isBusy(950), false);
  begin(few, 201, 1_000);
  assert.equal(few.isBusy(1_950), true);
  const slow = new RunPace(1_000);
  for (let second = 0; second < 5; second++) begin(slow, 900, second * 1_000);
  assert.equal(slow.isBusy(4_950), false);
});

/** The slots after so many seconds. */
function slotsAfter(seconds: number, behindMs: number, loopShare: number, pace = new RunPace(64)): number {
  for (let second = 0; second < seconds; second++) pace.share(behindMs, loopShare);
  return pace.slots;
}

test("events that are ten seconds behind, and have no time, take slots from runs, a quarter of which stays", () => {
  assert.equal(slotsAfter(1, 10_001, 0.8), 44);
  assert.equal(slotsAfter(2, 10_001, 1), 31);
  assert.equal(slotsAfter(100, 3_600_000, 1), 16);
  const few = new RunPace(2);
  assert.equal(slotsAfter(100, 3_600_000, 1, few), 1, "one at least");
});

test("runs give up no slot for events that are less behind, or that wait for their endpoint", () => {
  assert.equal(slotsAfter(100, 10_000, 1), 64);
  assert.equal(slotsAfter(100, 3_600_000, 0.79), 64);
});

test("runs take their slots back when events have caught up", () => {
  const pace = new RunPace(64);
  slotsAfter(100, 3_600_000, 1, pace);
  assert.equal(slotsAfter(1, 0, 1, pace), 19);
  assert.equal(slotsAfter(20, 0, 1, pace), 64);
});
