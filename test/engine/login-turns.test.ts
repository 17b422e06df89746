import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LoginTurns } from "#engine/login/login-turns.ts";
import { systemClock } from "#lib/clock.ts";

const NEVER = new AbortController().signal;

test("who may wait without an end waits asleep, and gets the turn in order", async (t) => {
  const warnings: string[] = [];
  const hear = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", hear);
  t.after(() => process.off("warning", hear));
  const turns = new LoginTurns(systemClock);
  const end = await turns.take("cred_1", Infinity, NEVER);
  const order: string[] = [];
  const waiting = ["first", "second"].map(async (name) => {
    const endOwn = await turns.take("cred_1", Infinity, NEVER);
    order.push(name);
    endOwn?.(true);
  });
  await sleep(30);
  assert.deepEqual(order, []);
  end?.(true);
  await Promise.all(waiting);
  assert.deepEqual(order, ["first", "second"]);
  // A timer that is longer than Node's fires at once, again and again, with a warning each time.
  assert.deepEqual(warnings, []);
});

test("a login that takes longer than one's patience is not waited for, and an abort ends the wait", async () => {
  const turns = new LoginTurns(systemClock);
  await turns.take("cred_1", Infinity, NEVER);
  assert.equal(await turns.take("cred_1", 5, NEVER), undefined);
  await assert.rejects(turns.take("cred_1", Infinity, AbortSignal.abort()), { name: "AbortError" });
});
