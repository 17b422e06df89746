/**
 * `npm run simulate [-- --seed N] [--seeds K] [--minutes M]`: the durable core under faults, in virtual time (docs/simulator.md). Without
 * an option, 200 seeds from a random one. `-- --planted [NAME…]`: which planted defects it finds, and with how many seeds.
 */
import { parseArgs } from "node:util";
import { findPlanted, plantsNamed } from "./planted.ts";
import { scenarioOf } from "./scenario.ts";
import { openStage, type Stage } from "./stage.ts";
import { simulate, type Simulated } from "./simulate.ts";
import { shrink } from "./shrink.ts";
import { storyOf } from "./story.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: "string" },
    seeds: { type: "string" },
    minutes: { type: "string" },
    trace: { type: "boolean", default: false },
    shrink: { type: "boolean", default: false },
    first: { type: "boolean", default: false },
    twice: { type: "boolean", default: false },
    planted: { type: "boolean", default: false },
    scenario: { type: "string" },
  },
});
const SEEDS = 200;
const SEEDS_PLANTED = 2_000;

if (values.planted) await findAllPlanted(Number(values.seed ?? 1), Number(values.seeds ?? SEEDS_PLANTED));
else
  await simulateAll(values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(values.seed));

async function findAllPlanted(first: number, seedsMax: number): Promise<void> {
  for (const plant of plantsNamed(positionals)) {
    const { seeds, oracle, said } = await findPlanted(plant, first, seedsMax);
    console.log(
      `${plant.name}: ${seeds === null ? `not found in ${seedsMax} seeds` : `found with ${seeds} seeds, by "${oracle}"`}`,
    );
    if (values.trace) console.log(said);
    if (seeds === null) process.exitCode = 1;
  }
}

interface Total {
  seeds: number;
  virtualMs: number;
  runs: number;
  readonly failed: Simulated[];
  /** Seeds with more than one trace. */
  readonly odd: number[];
}

async function simulateAll(first: number): Promise<void> {
  const beganMs = performance.now();
  const untilMs = values.minutes === undefined ? Infinity : beganMs + Number(values.minutes) * 60_000;
  const total: Total = { seeds: 0, virtualMs: 0, runs: 0, failed: [], odd: [] };
  {
    await using stage = await openStage();
    for (const seedsMax = readSeedsMax(); total.seeds < seedsMax && performance.now() < untilMs;) {
      if (
        values.scenario !== undefined &&
        scenarioOf(first + total.seeds).scenario.name !== values.scenario
      ) {
        total.seeds++;
        continue;
      }
      const simulated = await simulateOne(stage, first + total.seeds, total);
      if (seedsMax === 1 && simulated.violation === null)
        console.log(`seed ${simulated.seed}: ${simulated.events} events, digest ${simulated.digest}`);
      if (simulated.violation !== null && values.first) break;
    }
  }
  tell(first, total, (performance.now() - beganMs) / 1_000);
  process.exitCode = total.failed.length + total.odd.length === 0 ? 0 : 1;
}

function readSeedsMax(): number {
  if (values.seeds !== undefined) return Number(values.seeds);
  if (values.minutes !== undefined) return Infinity;
  return values.seed === undefined ? SEEDS : 1;
}

async function simulateOne(stage: Stage, seed: number, total: Total): Promise<Simulated> {
  const simulated = await simulate(stage, { seed, onEvent: values.trace ? console.log : undefined });
  if (values.twice) {
    const { digest } = await simulate(stage, { seed });
    if (digest !== simulated.digest) total.odd.push(seed);
    if (digest !== simulated.digest)
      console.log(`seed ${seed} has two traces: ${simulated.digest} and ${digest}`);
  }
  total.seeds++;
  total.virtualMs += simulated.virtualMs;
  total.runs += simulated.runs;
  if (simulated.violation === null) return simulated;
  total.failed.push(simulated);
  console.log(storyOf(values.shrink ? await shrink(stage, simulated) : simulated));
  return simulated;
}

function tell(first: number, { seeds, virtualMs, runs, failed }: Total, tookS: number): void {
  const minutes = virtualMs / 60_000;
  const { user, system } = process.cpuUsage();
  const found = failed.map(({ seed, violation }) => `${seed} (${violation?.oracle})`).join(", ");
  console.log(
    `${seeds} seeds from ${first}: ${runs} runs in ${minutes.toFixed(0)} virtual minutes, ${(minutes / tookS).toFixed(1)} a second; ` +
      `${(tookS / seeds).toFixed(2)} s a seed, and ${((user + system) / 1e6 / seeds).toFixed(2)} CPU seconds beside the database's. ` +
      (failed.length === 0 ? "Every oracle held." : `${failed.length} failed: ${found}.`),
  );
}
