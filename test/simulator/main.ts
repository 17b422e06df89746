/**
 * `npm run simulate [-- --seed N] [--seeds K] [--minutes M]`: the durable core under faults, in virtual time (docs/simulator.md). Without
 * an option, 20 seeds from a random one.
 */
import { parseArgs } from "node:util";
import { openStage } from "./stage.ts";
import { simulate, type Simulated } from "./simulate.ts";
import { shrink } from "./shrink.ts";
import { storyOf } from "./story.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string" },
    minutes: { type: "string" },
    trace: { type: "boolean", default: false },
    shrink: { type: "boolean", default: false },
    first: { type: "boolean", default: false },
    twice: { type: "boolean", default: false },
  },
});
const first = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(values.seed);
const untilMs = values.minutes === undefined ? Infinity : performance.now() + Number(values.minutes) * 60_000;
const most =
  values.seeds !== undefined
    ? Number(values.seeds)
    : values.minutes !== undefined
      ? Infinity
      : values.seed === undefined
        ? 20
        : 1;

const beganMs = performance.now();
const failed: Simulated[] = [];
/** Seeds with more than one trace. */
const odd: number[] = [];
let [count, virtualMs, runs] = [0, 0, 0];
{
  await using stage = await openStage();
  for (; count < most && performance.now() < untilMs; count++) {
    const seed = first + count;
    const simulated = await simulate(stage, { seed, onEvent: values.trace ? console.log : undefined });
    if (values.twice) {
      const { digest } = await simulate(stage, { seed });
      const isSame = digest === simulated.digest;
      if (!isSame) odd.push(seed);
      console.log(`seed ${seed}: ${digest}${isSame ? "" : `, and the first time ${simulated.digest}`}`);
    }
    virtualMs += simulated.virtualMs;
    runs += simulated.runs;
    if (simulated.violation === null) {
      if (most === 1) console.log(`seed ${seed}: ${simulated.events} events, digest ${simulated.digest}`);
      continue;
    }
    failed.push(simulated);
    const smaller = values.shrink ? await shrink(stage, simulated) : simulated;
    console.log(storyOf(smaller));
    if (values.first) {
      count++;
      break;
    }
  }
}
const tookS = (performance.now() - beganMs) / 1_000;
console.log(
  `${count} seeds from ${first}: ${runs} runs in ${(virtualMs / 60_000).toFixed(0)} virtual minutes, ` +
    `${(virtualMs / 60_000 / tookS).toFixed(1)} virtual minutes a second. ` +
    (failed.length === 0
      ? "Every oracle held."
      : `${failed.length} failed: ${failed.map(({ seed, violation }) => `${seed} (${violation?.oracle})`).join(", ")}.`),
);
process.exitCode = failed.length + odd.length === 0 ? 0 : 1;
