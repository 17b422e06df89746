/**
 * `npm run simulate [-- --seed N] [--seeds K] [--minutes M]`: the durable core under faults, in virtual time (docs/simulator.md). Without
 * an option, 200 seeds from a random one. `-- --planted [NAME…]`: which planted defects it finds, and with how many seeds.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { optionsOfJobs, simulateSideBySide } from "./jobs.ts";
import { KEPT_SEEDS } from "./kept-seeds.ts";
import { findPlanted, plantsNamed, type Found } from "./planted.ts";
import { writeTable } from "./planted-table.ts";
import { scenarioOf } from "./scenario.ts";
import { openStage, type Stage } from "./stage.ts";
import { simulate, type Simulated } from "./simulate.ts";
import { shrink } from "./shrink.ts";
import { storyOf } from "./story.ts";
import type { Total } from "./total.ts";

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
    // Puts what was found into docs/simulator.md.
    table: { type: "boolean", default: false },
    scenario: { type: "string" },
    jobs: { type: "string" },
    // Before them, the seeds that have found something.
    kept: { type: "boolean", default: false },
    // Of the seeds, each so many-th.
    step: { type: "string", default: "1" },
  },
});
const SEEDS = 200;
const SEEDS_PLANTED = 2_000;
/** Fewer than this are done before a second process has started. */
const SEEDS_OF_A_JOB = 20;

const first = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(values.seed);
if (values.planted) await findAllPlanted(Number(values.seed ?? 1), Number(values.seeds ?? SEEDS_PLANTED));
else {
  const jobs = readJobs();
  const sinceMs = performance.now();
  const total = jobs === 1 ? await simulateAll(Number(values.step)) : await simulateInJobs(jobs);
  tell(total, (performance.now() - sinceMs) / 1_000);
  process.exitCode = total.failed.length + total.odd.length === 0 ? 0 : 1;
}

async function findAllPlanted(firstSeed: number, seedsMax: number): Promise<void> {
  for (const plant of plantsNamed(positionals)) {
    const found: Found = await findPlanted(plant, firstSeed, seedsMax);
    const { seeds, tried, oracle, said } = found;
    if (values.table) writeTable([found]);
    const of = plant.scenario === undefined ? "" : `, of which ${tried} are of ${plant.scenario}`;
    console.log(
      `${plant.name}: ${seeds === null ? `not found in ${seedsMax} seeds${of}` : `found with ${seeds} seeds${of}, by "${oracle}"`}`,
    );
    if (values.trace) console.log(said);
    if (seeds === null) process.exitCode = 1;
  }
}

/** One seed after the other, each `step`-th from the first. */
async function simulateAll(step: number): Promise<Total> {
  const untilMs =
    values.minutes === undefined ? Infinity : performance.now() + Number(values.minutes) * 60_000;
  const total: Total = { seeds: 0, tried: 0, virtualMs: 0, runs: 0, cpuS: 0, failed: [], odd: [] };
  await using stage = await openStage();
  if (values.kept) for (const seed of KEPT_SEEDS) await simulateOne(stage, seed, total);
  for (const seedsMax = readSeedsMax(); total.seeds < seedsMax && performance.now() < untilMs;) {
    const seed = first + total.seeds * step;
    total.seeds++;
    if (values.scenario !== undefined && scenarioOf(seed).scenario.name !== values.scenario) continue;
    const simulated = await simulateOne(stage, seed, total);
    if ((seedsMax === 1 || values.twice) && simulated.violation === null)
      console.log(`seed ${simulated.seed}: ${simulated.events} events, digest ${simulated.digest}`);
    if (simulated.violation !== null && values.first) break;
  }
  const { user, system } = process.cpuUsage();
  total.cpuS = (user + system) / 1e6;
  return total;
}

/** The same in processes side by side. */
async function simulateInJobs(jobs: number): Promise<Total> {
  const given = process.argv.slice(2).filter((option) => option !== "--kept");
  const [one = [], ...others] = optionsOfJobs({ first, seeds: readSeedsMax(), jobs });
  return await simulateSideBySide(
    [[...one, ...(values.kept ? ["--kept"] : [])], ...others].map((options) => [...given, ...options]),
  );
}

function readJobs(): number {
  if (values.jobs !== undefined) return Number(values.jobs);
  const isAlone = values.first || values.trace || readSeedsMax() < SEEDS_OF_A_JOB;
  return isAlone ? 1 : Math.min(availableParallelism(), 4);
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
  total.tried++;
  total.virtualMs += simulated.virtualMs;
  total.runs += simulated.runs;
  if (simulated.violation === null) return simulated;
  total.failed.push(`${seed} (${simulated.violation.oracle})`);
  console.log(storyOf(values.shrink ? await shrink(stage, simulated) : simulated));
  return simulated;
}

function tell(total: Total, tookS: number): void {
  if (process.send) {
    process.send(total);
    process.disconnect();
    return;
  }
  const { seeds, tried, virtualMs, runs, cpuS, failed, odd } = total;
  const minutes = virtualMs / 60_000;
  const of = values.scenario === undefined ? "" : `, ${tried} of them of ${values.scenario}`;
  console.log(
    `${seeds} seeds from ${first}${of}: ${runs} runs in ${minutes.toFixed(0)} virtual minutes, ${(minutes / tookS).toFixed(1)} a second; ` +
      `${(tookS / tried).toFixed(2)} s a seed, and ${(cpuS / tried).toFixed(2)} CPU seconds beside the database's. ` +
      (failed.length === 0 ? "Every oracle held." : `${failed.length} failed: ${failed.join(", ")}.`) +
      (odd.length === 0 ? "" : ` ${odd.length} have two traces: ${odd.join(", ")}.`),
  );
}
