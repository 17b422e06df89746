import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget } from "#lib/byte-budget.ts";

const settled = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));

function open(bytesMax: number) {
  const budget = new ByteBudget(bytesMax);
  const owners = new Map<string, object>();
  const begun: string[] = [];
  const releases = new Map<string, () => void>();
  return {
    begun,
    ask: async (name: string, bytes: number, signal = new AbortController().signal): Promise<unknown> => {
      const owner = owners.get(name.charAt(0)) ?? {};
      owners.set(name.charAt(0), owner);
      let refused: unknown;
      void budget.take(owner, bytes, signal).then(
        (release) => {
          begun.push(name);
          releases.set(name, release);
        },
        (error: unknown) => (refused = error),
      );
      await settled();
      return refused;
    },
    release: async (name: string): Promise<void> => {
      releases.get(name)?.();
      await settled();
    },
  };
}

test("owners take turns, and who wants much is not passed by forever", async () => {
  const budget = open(10);
  for (const name of ["a1", "a2", "a3"]) await budget.ask(name, 5);
  await budget.ask("b1", 10);
  await budget.ask("c1", 5);
  assert.deepEqual(budget.begun, ["a1", "a2"]);
  await budget.release("a1");
  assert.deepEqual(budget.begun.slice(2), ["a3"]);
  await budget.release("a2");
  assert.deepEqual(budget.begun.slice(3), [], "b1 wants all of it, and c1 waits behind it");
  await budget.release("a3");
  assert.deepEqual(budget.begun.slice(3), ["b1"]);
  await budget.release("b1");
  assert.deepEqual(budget.begun.slice(4), ["c1"]);
});

test("more than there is is all of it", async () => {
  const budget = open(10);
  await budget.ask("a1", 1_000);
  await budget.ask("b1", 1);
  assert.deepEqual(budget.begun, ["a1"]);
  await budget.release("a1");
  assert.deepEqual(budget.begun, ["a1", "b1"]);
});

test("who is stopped while waiting takes nothing, and nobody waits behind it", async () => {
  const budget = open(10);
  const stop = new AbortController();
  await budget.ask("a1", 6);
  const asked = budget.ask("b1", 10, stop.signal);
  await asked;
  await budget.ask("c1", 4);
  assert.deepEqual(budget.begun, ["a1"]);
  stop.abort(new Error("stopped"));
  await settled();
  assert.deepEqual(budget.begun, ["a1", "c1"]);
  await budget.release("a1");
  await budget.release("c1");
  await budget.ask("d1", 10);
  assert.deepEqual(budget.begun, ["a1", "c1", "d1"]);
  await assert.rejects(new ByteBudget(1).take({}, 1, AbortSignal.abort(new Error("over"))), /over/);
});
