// docs/simulator.md: the durable core under faults, in virtual time. `npm run simulate` runs as many seeds as one likes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inTier, testInAll } from "../tiers.ts";
import { optionsOfJobs, simulateSideBySide } from "./jobs.ts";
import { KEPT_SEEDS } from "./kept-seeds.ts";
import { checkPlants, findPlanted, plantsNamed } from "./planted.ts";
import { scenarioOf, SCENARIOS } from "./scenario.ts";
import { openStage } from "./stage.ts";
import { simulate } from "./simulate.ts";

const SEEDS = Array.from({ length: 1_000 }, (_, index) => index + 1);
/** How many of them `npm test` has. */
const FAST = 200;
/** As many as one machine has cores at least. */
const JOBS = 2;
const TWICE = 50;

/** Between them, most statements with several tables have another plan than usual. */
const OTHER_PLANS = [
  { enable_seqscan: "off", enable_hashjoin: "off", enable_nestloop: "off" },
  { enable_indexscan: "off", enable_indexonlyscan: "off", enable_mergejoin: "off" },
];

test(
  "under faults that a seed chooses, every oracle holds, and every run ends",
  { timeout: 5_400_000 },
  async () => {
    // In processes of their own: here, the test runner follows each promise, which doubles what a seed costs.
    const seeds = inTier(SEEDS, (seed) => seed <= FAST).length;
    const [one = [], ...others] = optionsOfJobs({ first: 1, seeds, jobs: JOBS });
    const total = await simulateSideBySide([[...one, "--kept"], ...others]);
    assert.deepEqual(total.failed, [], "their stories are above; `npm run simulate -- --seed N` repeats one");
    assert.equal(total.tried, seeds + KEPT_SEEDS.length);
  },
);

test("the seeds of the fast tier have each scenario several times", () => {
  const names = SEEDS.slice(0, FAST).map((seed) => scenarioOf(seed).scenario.name);
  for (const { name } of SCENARIOS) {
    const { length } = names.filter((each) => each === name);
    assert.ok(length >= 3, `${name}: ${length}`);
  }
});

test("each defect of the list can be planted into the program as it is", () => {
  checkPlants();
});

testInAll(
  "the seeds themselves; a trace that does not repeat is seen when a failure is repeated",
  "the same seed gives the same trace, whatever was simulated before it",
  { timeout: 1_800_000 },
  async () => {
    await using stage = await openStage();
    const digests: string[] = [];
    for (let seed = 1; seed <= TWICE; seed++) digests.push((await simulate(stage, { seed })).digest);
    for (const [at, digest] of [...digests.entries()].toReversed())
      assert.equal((await simulate(stage, { seed: at + 1 })).digest, digest, `seed ${at + 1}`);
  },
);

testInAll(
  "the order of runs that are admitted together (runs/admission); that the same seed gives the same trace (above)",
  "how PostgreSQL plans a statement, and where rows lie, decides nothing: other plans give the same traces",
  { timeout: 1_800_000 },
  async () => {
    await using stage = await openStage();
    for (const settings of OTHER_PLANS) {
      await using others = await openStage(settings);
      for (let seed = 1; seed <= TWICE; seed++) {
        const [one, other] = [await simulate(stage, { seed }), await simulate(others, { seed })];
        assert.equal(other.digest, one.digest, `seed ${seed} with ${JSON.stringify(settings)}`);
      }
    }
  },
);

testInAll(
  "the oracles, by the seeds; `npm run simulate -- --planted` tries all defects",
  "a planted defect is found",
  { timeout: 1_800_000 },
  async () => {
    for (const plant of plantsNamed(["intent-after-request", "stale-limit", "no-fence", "pairs-starve"])) {
      const { seeds, said } = await findPlanted(plant, 1, 200);
      assert.notEqual(seeds, null, said);
    }
  },
);
