// docs/decisions/0007: a lone call goes out at once, calls that arrive meanwhile form the next batch;
// "A batch that fails is split and retried row by row, so that one bad row never fails its neighbours."
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "#lib/clock.ts";
import { groupCommit, TurnMissed, type GroupOptions } from "#lib/group-commit.ts";

interface Batch {
  readonly calls: readonly number[];
  succeed(): void;
  fail(error: unknown): void;
}

/** Long enough for whatever is due to be sent. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await nextTurn();
}

/** A group whose batches end when the test says so; what goes alone is refused when it is 13. */
function openGroup(options: Partial<GroupOptions<number, string>> = {}) {
  const batches: Batch[] = [];
  const alone: number[] = [];
  const call = groupCommit<number, string>({
    clock: systemClock,
    together: async (calls) =>
      await new Promise((resolve, reject) => {
        batches.push({ calls, succeed: () => resolve(calls.map(String)), fail: reject });
      }),
    alone: async (value) => {
      alone.push(value);
      if (value === 13) throw new Error("bad row");
      return `alone ${value}`;
    },
    mayGoAlone: () => true,
    callsMax: 100,
    batchesMax: 1,
    waitMaxMs: 60_000,
    ...options,
  });
  const batch = (index: number): Batch => {
    const found = batches[index];
    assert.ok(found, `batch ${index} was sent`);
    return found;
  };
  return { call, batches, batch, alone };
}

test("a lone call goes out in the same turn of the event loop; what comes meanwhile is the next batch, in order", async () => {
  const { call, batches, batch } = openGroup();
  const first = call(1);
  await nextTurn();
  assert.deepEqual(batch(0).calls, [1]);
  const others = [2, 3, 4].map(call);
  await turns();
  assert.equal(batches.length, 1, "nothing is sent while the batch is under way");
  batch(0).succeed();
  assert.equal(await first, "1");
  await turns();
  assert.deepEqual(batch(1).calls, [2, 3, 4]);
  batch(1).succeed();
  assert.deepEqual(await Promise.all(others), ["2", "3", "4"]);
});

test("calls of one turn go together, at most callsMax of them and batchesMax batches at once", async () => {
  const { call, batches, batch } = openGroup({ callsMax: 3, batchesMax: 2 });
  const answers = Promise.all(Array.from({ length: 8 }, (_, index) => call(index)));
  await turns();
  assert.deepEqual(
    batches.map(({ calls }) => calls),
    [
      [0, 1, 2],
      [3, 4, 5],
    ],
  );
  batch(1).succeed();
  await turns();
  assert.deepEqual(batch(2).calls, [6, 7]);
  batch(0).succeed();
  batch(2).succeed();
  assert.deepEqual(await answers, ["0", "1", "2", "3", "4", "5", "6", "7"]);
});

test("one bad call fails alone: each of its batch gets its own answer, and the next batch is not held up", async () => {
  const { call, batch, alone } = openGroup();
  const calls = [12, 13, 14].map(call);
  await turns();
  batch(0).fail(new Error("some row is bad"));
  assert.deepEqual(
    (await Promise.allSettled(calls)).map((outcome) =>
      outcome.status === "fulfilled" ? outcome.value : (outcome.reason as Error).message,
    ),
    ["alone 12", "bad row", "alone 14"],
  );
  assert.deepEqual(alone, [12, 13, 14]);
  const next = call(15);
  await turns();
  batch(1).succeed();
  assert.equal(await next, "15");
});

test("the next batch does not wait for the calls that went alone", async () => {
  const { call, batch } = openGroup({ alone: async () => await new Promise(() => {}) });
  void call(1);
  await turns();
  const next = call(2);
  batch(0).fail(new Error("slow"));
  await turns();
  batch(1).succeed();
  assert.equal(await next, "2");
});

test("when going alone can't help, every call of the batch fails with its error, and nothing is tried again", async () => {
  const lost = new Error("connection lost");
  const { call, batch, alone } = openGroup({ mayGoAlone: (error) => error !== lost });
  const calls = [1, 2].map(call);
  await turns();
  batch(0).fail(lost);
  for (const outcome of await Promise.allSettled(calls)) {
    assert.ok(outcome.status === "rejected" && outcome.reason === lost);
  }
  assert.deepEqual(alone, []);
});

test("a call that was not sent in time is refused and never sent; one that was sent waits for its answer", async () => {
  const { call, batches, batch } = openGroup({ waitMaxMs: 400 });
  const sent = call(1);
  await turns();
  const late = call(2);
  const refused = assert.rejects(late, (error) => error instanceof TurnMissed && error.code === "ETIMEDOUT");
  await sleep(200);
  const later = call(3);
  await refused;
  assert.equal(batches.length, 1);
  batch(0).succeed();
  assert.equal(await sent, "1");
  await turns();
  assert.deepEqual(batch(1).calls, [3]);
  batch(1).succeed();
  assert.equal(await later, "3");
});

test("every call is answered once, whatever the order in which batches end", async () => {
  let sent = 0;
  const call = groupCommit<number, number>({
    clock: systemClock,
    together: async (calls) => {
      sent += calls.length;
      await sleep(Math.random() * 5);
      if (calls.some((value) => value % 50 === 0)) throw new Error("bad");
      return calls.map((value) => value * 2);
    },
    alone: async (value) => value * 2,
    mayGoAlone: () => true,
    callsMax: 7,
    batchesMax: 3,
    waitMaxMs: 60_000,
  });
  const values = Array.from({ length: 500 }, (_, index) => index);
  const answers = await Promise.all(
    values.map(async (value) => {
      await sleep(Math.random() * 30);
      return await call(value);
    }),
  );
  assert.deepEqual(
    answers,
    values.map((value) => value * 2),
  );
  assert.equal(sent, values.length);
});
