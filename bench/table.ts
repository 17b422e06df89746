import type { Measured } from "./measure.ts";
import type { MemorySample } from "./memory.ts";

const HEADINGS = [
  "request",
  "requests/s",
  "p50 ms",
  "p99 ms",
  "p99 at half rate",
  "bare HTTP/s",
  "SQL alone/s",
  "of the lower limit",
  "goal",
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
    percent(row.ratio),
    row.goal === null ? "" : `≥ ${percent(row.goal)}`,
  ];
}

export function renderTable(rows: readonly Measured[], markdown: boolean): string {
  const lines = [HEADINGS, ...rows.map(cells)];
  if (markdown) {
    const [heading = [], ...rest] = lines;
    const rule = heading.map((_, index) => (index === 0 ? "---" : "---:"));
    return [heading, rule, ...rest].map((line) => `| ${line.join(" | ")} |`).join("\n");
  }
  const widths = HEADINGS.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, index) =>
          index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0),
        )
        .join("  "),
    )
    .join("\n");
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
