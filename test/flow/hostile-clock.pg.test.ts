// Hostile Blueprints and targets, by the clock: the run fails soon; other runs and the API don't notice. docs/decisions/0016. On a
// machine that does nothing else; `hostile-runs.pg.test.ts` says without a clock what happens to them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  atOnce,
  attackWith,
  BOMBS,
  EXPRESSIONS,
  oneByOne,
  openHostileStage,
  type HostileStage,
} from "./hostile-stage.ts";

/** On a quiet machine: what a hostile run may take, a good one beside it, the longest of those, and an answer of the API. */
const RUN_MS = 5_000;
const GOOD_RUN_MS = 100;
const LONGEST_GOOD_RUN_MS = 1_000;
const P99_MS = 100;
/** Room for machines of all kinds, beside what they make threads wait. */
const MARGIN = 5;

let stage: HostileStage;

before(async () => {
  stage = await openHostileStage();
  await stage.goodRun();
});
after(async () => await stage?.[Symbol.asyncDispose]());

for (const [what, attacks, how] of [
  ["one hostile run at a time", [...EXPRESSIONS, ...BOMBS], oneByOne],
  ["hostile expressions together", EXPRESSIONS, atOnce],
  ["bombs of a target together", BOMBS, atOnce],
] as const) {
  test(`${what}: each fails soon, and nobody notices`, { timeout: 400_000 }, async (t) => {
    const { slowestMs, medianMs, longestMs, p99Ms, waited } = await attackWith(stage, t, attacks, how);
    const most = MARGIN * waited;
    assert.ok(slowestMs < most * RUN_MS, `${slowestMs} ms`);
    assert.ok(medianMs < most * GOOD_RUN_MS, `median of good runs ${medianMs} ms`);
    assert.ok(longestMs < most * LONGEST_GOOD_RUN_MS, `a good run took ${longestMs} ms`);
    assert.ok(p99Ms < most * P99_MS, `p99 ${p99Ms} ms`);
  });
}
