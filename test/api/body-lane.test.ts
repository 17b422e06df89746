// Large bodies are bounded by bytes and read in turn, fairly.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BodyLane, type Turn } from "#api/body-lane.ts";
import { inTurn } from "#api/large-bodies.ts";
import { Problem } from "#domain/problem.ts";

const BOUNDS = { bytesMax: 100, readBytesMax: 40, senderReadBytesMax: 20 };

/** A lane, and what has become of the bodies that were brought to it. */
function openLane() {
  const lane = new BodyLane(BOUNDS);
  const begun: string[] = [];
  const refused: string[] = [];
  const turns = new Map<string, Turn>();
  return {
    begun,
    refused,
    bring: async (name: string, bytes: number): Promise<void> => {
      void lane.enter(name.charAt(0), bytes).then(
        (turn) => {
          begun.push(name);
          turns.set(name, turn);
        },
        (error: unknown) => {
          assert.ok(error instanceof Problem);
          assert.equal(error.status, 503);
          assert.match(error.headers["Retry-After"] ?? "", /^[1-9]\d*$/);
          refused.push(name);
        },
      );
      await settled();
    },
    end: async (name: string): Promise<void> => {
      turns.get(name)?.end();
      await settled();
    },
    grow: (name: string, bytes: number) => turns.get(name)?.grow(bytes),
  };
}

const settled = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));

test("a body is read when there is room for it, and senders take turns", async () => {
  const lane = openLane();
  for (const name of ["a1", "a2", "a3", "a4"]) await lane.bring(name, 10);
  assert.deepEqual(lane.begun, ["a1", "a2"], "one sender has a share of what is read at once");
  await lane.bring("b1", 10);
  await lane.bring("c1", 20);
  await lane.bring("b2", 10);
  assert.deepEqual(lane.begun, ["a1", "a2", "b1"], "c1 does not fit, and b2 does not go before it");
  await lane.end("a1");
  assert.deepEqual(lane.begun.slice(3), ["a3"]);
  await lane.end("a2");
  assert.deepEqual(lane.begun.slice(4), ["c1"], "a has had its turn");
  await lane.end("b1");
  assert.deepEqual(lane.begun.slice(5), ["b2"]);
  await lane.end("c1");
  assert.deepEqual(lane.begun.slice(6), ["a4"]);
  assert.deepEqual(lane.refused, []);
});

test("over the bound in all, who has brought most is refused: others find room", async () => {
  const lane = openLane();
  for (let at = 1; at <= 10; at++) await lane.bring(`a${at}`, 10);
  await lane.bring("a-late", 10);
  assert.deepEqual(lane.refused, ["a-late"], "a sender that has all of it");
  await lane.bring("b1", 10);
  assert.deepEqual(lane.refused, ["a-late", "a10"], "gives way, with what it has brought last");
  assert.deepEqual(lane.begun, ["a1", "a2", "b1"]);
  await lane.bring("b2", 60);
  assert.deepEqual(lane.refused, ["a-late", "a10", "b2"], "but not to one that wants more than it has");
});

test("a body that is longer than was said takes more, or is refused", async () => {
  const lane = openLane();
  await lane.bring("a1", 10);
  await lane.bring("b1", 10);
  lane.grow("a1", 30);
  assert.throws(() => lane.grow("b1", 20), Problem);
  await lane.end("a1");
  lane.grow("b1", 40);
  await lane.end("b1");
  for (let at = 1; at <= 10; at++) await lane.bring(`c${at}`, 10);
  assert.deepEqual(lane.refused, [], "everything that was taken was given back");
});

test("a body that is longer than all that is read at once is read alone", async () => {
  const lane = openLane();
  await lane.bring("a1", 10);
  await lane.bring("b1", 50);
  await lane.bring("c1", 10);
  assert.deepEqual(lane.begun, ["a1"], "nothing goes before it forever");
  await lane.end("a1");
  assert.deepEqual(lane.begun, ["a1", "b1"]);
  await lane.end("b1");
  assert.deepEqual(lane.begun, ["a1", "b1", "c1"]);
});

test("work on bodies takes turns by sender, not by who came first", async () => {
  const done: string[] = [];
  const work = async (name: string): Promise<void> => {
    await inTurn(
      name.charAt(0),
      (function* () {
        yield;
        done.push(name);
      })(),
    );
  };
  await Promise.all(["a1", "a2", "a3", "a4", "b1", "b2"].map(work));
  assert.deepEqual(done, ["a1", "a2", "b1", "a3", "b2", "a4"]);
});
