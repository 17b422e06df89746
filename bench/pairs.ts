/** Two checkouts measured in turns, compared by what each costs. */
import { cpuUsOf, medianCosts, type Costs } from "./costs.ts";
import { median } from "./runs-latency.ts";
import { renderLines } from "./lines.ts";

/** One measurement of each, next to each other. */
export interface Pair {
  readonly here: Costs;
  readonly there: Costs;
}

export interface Compared {
  readonly id: string;
  readonly title: string;
  readonly pairs: Pair[];
}

/** Measures both; each goes first in every other round, as what comes second finds another machine. */
export async function inTurns(
  rounds: number,
  here: () => Promise<Costs>,
  there: () => Promise<Costs>,
): Promise<Pair[]> {
  const pairs: Pair[] = [];
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) {
      const first = await here();
      pairs.push({ here: first, there: await there() });
    } else {
      const first = await there();
      pairs.push({ there: first, here: await here() });
    }
  }
  return pairs;
}

/** By CPU: what one costs here, of what it costs there. The median of the pairs, and the middle half of them. */
export interface Ratio {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

export function ratioOfPairs(pairs: readonly Pair[], value: (costs: Costs) => number = cpuUsOf): Ratio {
  const sorted = pairs
    .map(({ here, there }) => value(here) / value(there))
    .toSorted((one, other) => one - other);
  const at = (share: number): number => sorted[Math.round((sorted.length - 1) * share)] ?? Number.NaN;
  return { median: median(sorted), low: at(0.25), high: at(0.75) };
}

const micros = (value: number): string => value.toFixed(value < 100 ? 1 : 0);

/** One line for each kind of request or run, and below it how far all of them together are from each other. */
export function renderPairs(compared: readonly Compared[], markdown: boolean): string {
  const headings = [
    "here / there",
    "process µs",
    "main thread µs",
    "PostgreSQL µs",
    "WAL records",
    "WAL bytes",
    "commits",
    "CPU, here of there",
    "middle half",
  ];
  const lines = compared.map(({ title, pairs }) => {
    const here = medianCosts(pairs.map((pair) => pair.here));
    const there = medianCosts(pairs.map((pair) => pair.there));
    const both = (value: (costs: Costs) => string): string => `${value(here)} / ${value(there)}`;
    const ratio = ratioOfPairs(pairs);
    return [
      title,
      both(({ processUs }) => micros(processUs)),
      both(({ mainUs }) => micros(mainUs)),
      both(({ postgresUs }) => micros(postgresUs)),
      both(({ walRecords }) => walRecords.toFixed(1)),
      both(({ walBytes }) => walBytes.toFixed(0)),
      both(({ commits }) => commits.toFixed(2)),
      ratio.median.toFixed(3),
      `${ratio.low.toFixed(3)} to ${ratio.high.toFixed(3)}`,
    ];
  });
  const logs = compared.map(({ pairs }) => Math.log(ratioOfPairs(pairs).median));
  const mean = Math.exp(logs.reduce((sum, each) => sum + each, 0) / Math.max(logs.length, 1));
  return `${renderLines([headings, ...lines], markdown)}\n\nall of them, geometric mean: ${mean.toFixed(3)}`;
}
