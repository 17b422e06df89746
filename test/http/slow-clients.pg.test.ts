// docs/decisions/0028: 1,000 slow connections, and bodies that cost the most to read: a good client hardly feels them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openMisused, type Misused } from "./misuse-setup.ts";
import { BOMBS_AT_ONCE, p99, pollUnderAttack } from "./slow-clients.ts";

/** How much of the service's work a poll may meet, on whatever machine. Bodies that are read in one go make it 650 ms. */
const WORK_P99_MS_MAX = 200;

let misused: Misused;
before(async () => {
  misused = await openMisused();
});
after(async () => await misused?.[Symbol.asyncDispose]());

test("while 1,000 slow connections and 20 parallel JSON bombs go on, a good client meets little of their work", async (t) => {
  const { polls, answered } = await pollUnderAttack(misused);
  const work = p99(polls.map((poll) => poll.ranMs));
  t.diagnostic(`p99 of ${polls.length} polls: ${work.toFixed(1)} ms of work`);
  assert.deepEqual([...new Set(polls.map((poll) => poll.status))], [200]);
  assert.ok(answered.length >= BOMBS_AT_ONCE);
  for (const status of answered) assert.ok(status === 422 || status === 413, `a bomb was answered ${status}`);
  assert.equal(misused.service.child.exitCode, null);
  assert.ok(work < WORK_P99_MS_MAX, `${work} ms`);
});
