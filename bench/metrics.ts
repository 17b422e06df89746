/**
 * `npm run bench -- metrics`: what metrics cost the public API. Requests are counted and not counted in turns within one process, by its CPU
 * time; and a scrape costs what it costs the process and PostgreSQL. docs/performance.md says how to read it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { freePort } from "../test/free-port.ts";
import { install } from "../test/service.ts";
import { lookAtCosts } from "./costs.ts";
import { renderLines } from "./lines.ts";
import { loadOf } from "./measure.ts";
import type { Slice, SliceOrder } from "./metrics-process.ts";
import { startProgram, type Program } from "./processes.ts";
import { median } from "./runs-latency.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";
import { makeDatabasesOn, openServer } from "./server.ts";
import { openStage, type Stage } from "./stage.ts";

const USAGE = `npm run bench -- metrics [options]

  --only a,b       some of: ${SCENARIOS.map(({ id }) => id).join(", ")}; status,trigger unless given
  --pairs n        of slices with and without metrics; 2000 unless given
  --times n        how often a request is counted in the slices with metrics; 20 unless given, as the cost of once is below the noise
  --slice n        milliseconds of each; 50 unless given
  --connections n  16 unless given
  --scrapes n      60 unless given
  --markdown       the table as Markdown`;

const { values } = parseArgs({
  // After the name of the bench.
  args: process.argv.slice(3),
  options: {
    only: { type: "string", default: "status,trigger" },
    pairs: { type: "string", default: "2000" },
    times: { type: "string", default: "20" },
    slice: { type: "string", default: "50" },
    connections: { type: "string", default: "16" },
    scrapes: { type: "string", default: "60" },
    markdown: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const isMarkdown = values.markdown || process.env["npm_config_markdown"] === "true";
const say = (text: string): void => void process.stderr.write(`${text}\n`);

const SCRAPE_EVERY_SECONDS = 15;
/** Until the code is compiled. */
const WARM_SECONDS = 5;
const ROUND_SECONDS = 10;
const SPARE_SECONDS = 2;
const SCRAPE_PAUSE_MS = 100;
/** 95 % of a normal distribution. */
const DEVIATIONS = 1.96;

interface Interval {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** The median, and the values between which that of all such pairs lies with 95 %, by the ranks that a binomial distribution gives. */
function intervalOf(ratios: readonly number[]): Interval {
  const sorted = ratios.toSorted((one, other) => one - other);
  const reach = (DEVIATIONS * Math.sqrt(sorted.length)) / 2;
  const at = (rank: number): number =>
    sorted[Math.min(Math.max(Math.round(rank), 0), sorted.length - 1)] ?? Number.NaN;
  return {
    median: median(sorted),
    low: at(sorted.length / 2 - reach - 1),
    high: at(sorted.length / 2 + reach),
  };
}

const described = ({ median: middle, low, high }: Interval): readonly string[] => [
  middle.toFixed(3),
  `${low.toFixed(3)} to ${high.toFixed(3)}`,
];

/** What counting once adds, in percent. */
function onceOf({ median: middle, low, high }: Interval, times: number): string {
  const [each, least, most] = [middle, low, high].map((ratio) => (((ratio - 1) / times) * 100).toFixed(2));
  return `${each} % (${least} to ${most})`;
}

interface Measuring {
  readonly stage: Stage;
  readonly service: Program & { readonly url: string };
  readonly pairs: number;
  readonly sliceMs: number;
  readonly times: number;
  readonly connections: number;
}

async function measureRequests(measuring: Measuring, scenario: Scenario): Promise<readonly string[]> {
  const { stage, service, pairs, sliceMs, times, connections } = measuring;
  const load = async (seconds: number) =>
    await loadOf(stage, service.url, scenario, { connections, rounds: 1, warmSeconds: 0, seconds }, null);
  await load(WARM_SECONDS);
  const slices: Slice[] = [];
  while (slices.length < 2 * pairs) {
    const order: SliceOrder = { want: "slices", seconds: ROUND_SECONDS, sliceMs, times };
    // The load is a process, and begins when it has started.
    const [found] = await Promise.all([
      service.ask<readonly Slice[]>(order),
      load(ROUND_SECONDS + SPARE_SECONDS),
    ]);
    slices.push(...found);
  }
  const [ratios, control] = [intervalOf(ratiosOf(slices)), intervalOf(controlsOf(slices))];
  say(`${scenario.title}: ${described(ratios).join(", ")}; control ${described(control).join(", ")}`);
  const without = median(slices.flatMap(({ isObserving, cpuUs }) => (isObserving || !cpuUs ? [] : [cpuUs])));
  const once = onceOf(ratios, times);
  return [scenario.title, without.toFixed(1), ...described(ratios), once, ...described(control)];
}

/** With metrics, of without: of two slices next to each other. */
const ratiosOf = (slices: readonly Slice[]): readonly number[] =>
  eachTwo(slices, 0).map(([one, other, isFirst]) => (isFirst ? one / other : other / one));

/** Of two slices of the same kind next to each other. */
const controlsOf = (slices: readonly Slice[]): readonly number[] =>
  eachTwo(slices, 1).map(([one, other]) => one / other);

/** The costs of two slices next to each other, and whether the first of them has metrics. */
function eachTwo(
  slices: readonly Slice[],
  from: number,
): readonly (readonly [one: number, other: number, isFirst: boolean])[] {
  const found: (readonly [number, number, boolean])[] = [];
  for (let at = from; at < slices.length - 1; at += 2) {
    const [one, other] = slices.slice(at, at + 2);
    if (one?.cpuUs && other?.cpuUs) found.push([one.cpuUs, other.cpuUs, one.isObserving]);
  }
  return found;
}

/** Milliseconds of CPU of a scrape: of the process and of PostgreSQL, without what both use by themselves in the same time. */
async function measureScrapes({ stage, service }: Measuring, port: number, scrapes: number): Promise<string> {
  const scrape = async (): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
    if (!answer.ok) throw new Error(`the metrics were answered ${answer.status}`);
    await answer.text();
  };
  await scrape();
  const look = async () => await lookAtCosts(stage.server, [service.pid]);
  const before = await look();
  const beganMs = performance.now();
  for (let number = 0; number < scrapes; number++) {
    await scrape();
    await sleep(SCRAPE_PAUSE_MS);
  }
  const between = await look();
  await sleep(performance.now() - beganMs);
  const after = await look();
  const cost = (seconds: (of: typeof before) => number): number =>
    (Math.max(2 * seconds(between) - seconds(before) - seconds(after), 0) * 1_000) / scrapes;
  const [ofProcess, ofPostgres] = [
    cost(({ processSeconds }) => processSeconds),
    cost(({ postgresSeconds }) => postgresSeconds),
  ];
  const share = (ofProcess + ofPostgres) / (SCRAPE_EVERY_SECONDS * 1_000);
  return (
    `a scrape: ${ofProcess.toFixed(1)} ms CPU of the process, ${ofPostgres.toFixed(1)} ms of PostgreSQL; ` +
    `every ${SCRAPE_EVERY_SECONDS} s ${(share * 100).toFixed(2)} % of a core`
  );
}

function chosen(): readonly Scenario[] {
  return values.only.split(",").map((id) => {
    const scenario = SCENARIOS.find((each) => each.id === id.trim());
    if (!scenario) throw new Error(`There is no scenario ${id}; see --help`);
    return scenario;
  });
}

async function benchMetrics(): Promise<void> {
  const scenarios = chosen();
  say("preparing an installation");
  await using server = await openServer({ autovacuum: false, statements: false });
  makeDatabasesOn(server);
  await using installation = await install({ LATCHKEY_LOG_LEVEL: "warn", LATCHKEY_QUEUED_RUNS: "off" });
  const stage = await openStage(server, installation);
  const port = await freePort();
  await using program = startProgram("./metrics-process.ts", {
    environment: { ...installation.environment, LATCHKEY_METRICS_PORT: String(port) },
  });
  const service = {
    ...program,
    ...(await program.ask<{ url: string }>({ want: "url" } satisfies SliceOrder)),
  };
  const measuring: Measuring = {
    stage,
    service,
    pairs: Number(values.pairs),
    sliceMs: Number(values.slice),
    times: Number(values.times),
    connections: Number(values.connections),
  };
  const scraped = await measureScrapes(measuring, port, Number(values.scrapes));
  const lines: (readonly string[])[] = [];
  for (const scenario of scenarios) lines.push(await measureRequests(measuring, scenario));
  const headings = [
    "request",
    "process µs",
    `counted ${values.times} times, of not`,
    "95 %",
    "counting once adds",
    "equal slices",
    "95 %",
  ];
  console.log(`${renderLines([headings, ...lines], isMarkdown)}\n\n${scraped}`);
}

if (values.help) console.log(USAGE);
else await benchMetrics();
