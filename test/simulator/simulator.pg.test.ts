// docs/simulator.md: the durable core under faults, in virtual time. `npm run simulate` runs as many seeds as one likes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inTier, testInAll } from "../tiers.ts";
import { openStage, type Stage } from "./stage.ts";
import { simulate } from "./simulate.ts";
import { storyOf } from "./story.ts";

/** Seeds that have found something, with what it was. */
const KEPT_SEEDS: readonly number[] = [];
const FAST = 2;
const SEEDS = Array.from({ length: 60 }, (_, index) => index + 1);
const TWICE = 20;

let stage: Stage;
before(async () => {
  stage = await openStage();
});
after(async () => await stage?.[Symbol.asyncDispose]());

test("under faults that a seed chooses, every oracle holds, and every run ends", async () => {
  for (const seed of new Set([...KEPT_SEEDS, ...inTier(SEEDS, (_, index) => index < FAST)])) {
    const simulated = await simulate(stage, { seed });
    assert.equal(simulated.violation, null, storyOf(simulated));
  }
});

testInAll(
  "the seeds themselves; a trace that does not repeat is seen when a failure is repeated",
  "the same seed gives the same trace",
  { timeout: 600_000 },
  async () => {
    for (const seed of SEEDS.slice(0, TWICE)) {
      const [first, second] = [await simulate(stage, { seed }), await simulate(stage, { seed })];
      assert.equal(first.digest, second.digest, `seed ${seed}`);
    }
  },
);
