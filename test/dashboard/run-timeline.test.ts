// What a run spent its time with, as its page shows it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readTimeline, splitDuration, type TimedRun } from "../../ui/pages/run-timeline.ts";

const at = (second: number): string => new Date(second * 1_000).toISOString();
const RUN: TimedRun = {
  created_at: at(0),
  claimed_at: at(10),
  started_at: at(12),
  ended_at: at(900),
  credentials: ["portal"],
  reviews: [{ node: "gate", created_at: at(20), decided_at: at(800) }],
};

const seconds = (run: TimedRun, now = 0) =>
  Object.fromEntries(splitDuration(readTimeline(run, now * 1_000)).map(({ name, ms }) => [name, ms / 1_000]));

test("queueing, login, waiting and steps add up to the run's duration", () => {
  assert.deepEqual(seconds(RUN), { queued: 10, login: 2, "waiting for a review": 780, steps: 108 });
});

test("a login that fails has taken the time from the claim to the end", () => {
  const failed = { ...RUN, started_at: null, ended_at: at(15), reviews: [] };
  assert.deepEqual(seconds(failed), { queued: 10, login: 5, steps: 0 });
});

test("a run that nobody logs in for has no login", () => {
  assert.deepEqual(seconds({ ...RUN, credentials: [], claimed_at: at(12) }), {
    queued: 12,
    "waiting for a review": 780,
    steps: 108,
  });
});

test("what is under way lasts until now, by the service's clock", () => {
  const open = { ...RUN, ended_at: null, reviews: [{ node: "gate", created_at: at(20), decided_at: null }] };
  assert.deepEqual(seconds(open, 60), { queued: 10, login: 2, "waiting for a review": 40, steps: 8 });
  const queued = { ...RUN, claimed_at: null, started_at: null, ended_at: null, reviews: [] };
  assert.deepEqual(seconds(queued, 7), { queued: 7, steps: 0 });
  const loggingIn = { ...queued, claimed_at: at(10) };
  assert.deepEqual(seconds(loggingIn, 11), { queued: 10, login: 1, steps: 0 });
});

test("where nothing tells when the login began, queue and login are one", () => {
  assert.deepEqual(seconds({ ...RUN, claimed_at: null }), {
    "queued and login": 12,
    "waiting for a review": 780,
    steps: 108,
  });
});
