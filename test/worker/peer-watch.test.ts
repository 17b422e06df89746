// A peer is dead by what its observer has seen with its own clock: no clock of the database, and no stall of it, ends anybody.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SeenWorker } from "#db/runs/workers.ts";
import { limits } from "#domain/limits.ts";
import { PeerWatch } from "#worker/peer-watch.ts";

const SELF: SeenWorker = { id: "self", sign: "0", hasLock: true, isOfServer: true };
const peer = (sign: string, more: Partial<SeenWorker> = {}): SeenWorker => ({
  id: "peer",
  sign,
  hasLock: true,
  isOfServer: true,
  ...more,
});

/** A worker that looks four times a second; each look is told what it sees, and gives whom it takes for dead. */
function observer() {
  const watch = new PeerWatch();
  let nowMs = 1_000_000;
  return {
    watch,
    nowMs: () => nowMs,
    look: (seen: SeenWorker, { afterMs = 250, tookMs = 5, self = SELF } = {}): readonly string[] => {
      const askedAtMs = nowMs + afterMs;
      nowMs = askedAtMs + tookMs;
      return watch.judge(SELF.id, [self, seen], { askedAtMs, nowMs }).map(({ id }) => id);
    },
  };
}

test("a peer whose lock is free is dead at once", () => {
  const { look } = observer();
  assert.deepEqual(look(peer("1")), []);
  assert.deepEqual(look(peer("1", { hasLock: false })), ["peer"]);
});

test("a peer that gives no sign of life is dead after the whole time, and one that does is not", () => {
  const { look } = observer();
  let looks = 0;
  while (look(peer("1")).length === 0) looks++;
  assert.ok(Math.abs(looks * 255 - limits.heartbeatStaleMs) < 600, `${looks} looks`);
  for (let beat = 2; beat < 200; beat++) assert.deepEqual(look(peer(String(beat))), []);
});

test("while the database stands still, nobody looks, and nobody is dead of it", () => {
  const { look } = observer();
  look(peer("1"));
  // One look hangs, or none comes through: the connections are gone as well, and their locks.
  assert.deepEqual(look(peer("1", { hasLock: false }), { tookMs: 60_000 }), []);
  assert.deepEqual(look(peer("1", { hasLock: false })), []);
  assert.deepEqual(look(peer("1", { hasLock: false }), { afterMs: 60_000 }), []);
  assert.deepEqual(look(peer("2")), []);
  // What has really ended is found all the same.
  let looks = 0;
  while (look(peer("2", { hasLock: false })).length === 0) looks++;
  assert.ok(looks * 255 < limits.heartbeatStaleMs + 600, `${looks} looks`);
});

test("after its own connection was lost, or a look failed, a free lock is no sign for as long as others may need to take theirs again", () => {
  const { look, watch, nowMs } = observer();
  look(peer("1"));
  watch.disturb(nowMs());
  assert.deepEqual(look(peer("1", { hasLock: false })), []);
  const alone = observer();
  alone.look(peer("1"));
  assert.deepEqual(alone.look(peer("1", { hasLock: false }), { self: { ...SELF, hasLock: false } }), []);
});

test("a lock that was taken on another server proves nothing: it was started again, or promoted", () => {
  const { look } = observer();
  assert.deepEqual(look(peer("1", { hasLock: false, isOfServer: false })), []);
  assert.deepEqual(look(peer("2", { hasLock: true })), []);
});
