// Finding M4: who waits for a password to be checked, and who is not kept from it by a flood.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { PasswordsBusy, PasswordTurns, type PasswordTurn } from "#lib/password-turns.ts";

/** Asks with all of them at once; the order in which they are answered, and who is told to come again. */
async function ask(turns: readonly (readonly [who: string, turn: PasswordTurn])[]) {
  const line = new PasswordTurns();
  const answered: string[] = [];
  const busy: string[] = [];
  await Promise.all(
    turns.map(async ([who, turn]) => {
      try {
        // Each as long as the others, whatever else the machine does.
        await line.take(turn, async () => await setImmediate());
        answered.push(who);
      } catch (error) {
        assert.ok(error instanceof PasswordsBusy);
        busy.push(who);
      }
    }),
  );
  return { answered, busy };
}

const flood = (network: string, times: number) =>
  Array.from({ length: times }, () => [network, { network }] as const);

test("known browsers come before strangers, however many those are", async () => {
  const { answered, busy } = await ask([...flood("a", 6), ...flood("b", 4), ["operator", "known"]]);
  assert.deepEqual(busy, []);
  // Two are being checked when it comes.
  assert.ok(answered.indexOf("operator") <= 3, answered.join());
});

test("one network has a few places, and its turns with the others", async () => {
  const { answered, busy } = await ask([...flood("a", 50), ["other", { network: "b" }]]);
  assert.deepEqual([busy.length, new Set(busy)], [44, new Set(["a"])]);
  assert.ok(answered.indexOf("other") <= 4, answered.join());
});

test("when all places are taken, a network with none takes one of a network with several", async () => {
  const many = Array.from({ length: 30 }, (_, index) => flood(`network-${index}`, 4)).flat();
  const { answered, busy } = await ask([...many, ["newcomer", { network: "new" }]]);
  assert.ok(answered.includes("newcomer"));
  assert.equal(answered.length, 2 + 100);
  assert.ok(busy.length > 0 && !busy.includes("newcomer"));
});
