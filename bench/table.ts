import { cpuUsOf } from "./costs.ts";
import type { Measured } from "./measure.ts";
import type { MemorySample } from "./memory.ts";
import { renderLines } from "./lines.ts";

const HEADINGS = [
  "request",
  "requests/s",
  "p50 ms",
  "p99 ms",
  "p99 at half rate",
  "bare HTTP/s",
  "SQL alone/s",
  "both together/s",
  "of both",
  "of the lower one",
  "goal",
];

const COST_HEADINGS = [
  "a request",
  "service µs",
  "of it main thread",
  "PostgreSQL µs",
  "bare and SQL together µs",
  "of it PostgreSQL",
  "of both by CPU",
  "WAL records",
  "WAL bytes",
  "commits",
];

const whole = (value: number): string => Math.round(value).toLocaleString("en-US");
const percent = (share: number): string => `${Math.round(share * 100)} %`;
const mib = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MiB`;

function cells(row: Measured): string[] {
  return [
    row.title,
    whole(row.perSecond),
    row.p50Ms.toFixed(1),
    row.p99Ms.toFixed(1),
    row.halfRateP99Ms.toFixed(1),
    whole(row.barePerSecond),
    whole(row.sqlPerSecond),
    whole(row.togetherPerSecond),
    percent(row.ofTogether),
    percent(row.ratio),
    row.goal === null ? "" : `≥ ${percent(row.goal)}`,
  ];
}

function costCells({ title, costs, togetherCosts, ofTogetherByCpu }: Measured): string[] {
  return [
    title,
    whole(costs.processUs),
    whole(costs.mainUs),
    whole(costs.postgresUs),
    whole(cpuUsOf(togetherCosts)),
    whole(togetherCosts.postgresUs),
    percent(ofTogetherByCpu),
    costs.walRecords.toFixed(1),
    whole(costs.walBytes),
    costs.commits.toFixed(2),
  ];
}

export function renderTable(rows: readonly Measured[], markdown: boolean): string {
  return renderLines([HEADINGS, ...rows.map(cells)], markdown);
}

/** What each request cost at full load: CPU microseconds, and what was written to PostgreSQL's log. */
export function renderCosts(rows: readonly Measured[], markdown: boolean): string {
  return renderLines([COST_HEADINGS, ...rows.map(costCells)], markdown);
}

export function renderMemory(samples: readonly MemorySample[]): string {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last) return "";
  const heapMax = Math.max(...samples.map(({ heapBytes }) => heapBytes));
  const rssMax = Math.max(...samples.map(({ rssBytes }) => rssBytes));
  return (
    `Memory over ${Math.round(last.atSeconds)} s of mixed load: heap after a full collection ${mib(first.heapBytes)} → ` +
    `${mib(last.heapBytes)} (most: ${mib(heapMax)}), resident ${mib(first.rssBytes)} → ${mib(last.rssBytes)} (most: ${mib(rssMax)})`
  );
}
