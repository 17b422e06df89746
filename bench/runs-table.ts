import { GROUPS, ratioOf, type ContestRow } from "./runs-contest.ts";

const whole = (value: number): string => Math.round(value).toLocaleString("en-US");
const share = (value: number | null): string =>
  value === null ? "" : value >= 0.1 ? `${Math.round(value * 100)} %` : `${(value * 100).toFixed(1)} %`;
const fixed = (value: number, digits: number): string =>
  Number.isFinite(value) ? value.toFixed(digits) : "n/m";

/** Lines of cells, the first of them the headings. */
export function renderLines(lines: readonly (readonly string[])[], markdown: boolean): string {
  if (markdown) {
    const [heading = [], ...rest] = lines;
    const rule = heading.map((_, index) => (index === 0 ? "---" : "---:"));
    return [heading, rule, ...rest].map((line) => `| ${line.join(" | ")} |`).join("\n");
  }
  const widths = (lines[0] ?? []).map((_, index) =>
    Math.max(...lines.map((line) => line[index]?.length ?? 0)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0)))
        .join("  "),
    )
    .join("\n");
}

export function renderContest(
  rows: readonly ContestRow[],
  workers: readonly number[],
  markdown: boolean,
): string {
  const headings = [
    "",
    ...workers.flatMap((count) => [
      `runs/s, ${count} worker${count === 1 ? "" : "s"}`,
      "CPU ms a run",
      "of the limit",
    ]),
    "commits a run",
    "p50 ms",
    "p99 ms",
  ];
  const sections = GROUPS.flatMap(({ id }) => {
    const lines = rows
      .filter((row) => row.group === id)
      .map((row) => [
        row.title,
        ...row.drains.flatMap((drain, place) => [
          whole(drain.perSecond),
          fixed(drain.cpuMsPerRun, 3),
          share(ratioOf(rows, [row.group, row.who], [row.group, "sql"], place)),
        ]),
        fixed(row.drains[0]?.commitsPerRun ?? Number.NaN, 2),
        row.light === null ? "" : fixed(row.light.p50Ms, 1),
        row.light === null ? "" : fixed(row.light.p99Ms, 1),
      ]);
    return lines;
  });
  return renderLines([headings, ...sections], markdown);
}

const times = (value: number | null): string =>
  value === null ? "not measured" : `${value.toFixed(1)} times`;
const part = (value: number | null): string => (value === null ? "not measured" : share(value));

/** What the goals say, each with what was measured next to each other in the same rounds. */
export function renderGoals(rows: readonly ContestRow[]): string {
  const steps = ["steps", "ours"] as const;
  const noop = ["noop", "ours"] as const;
  const light = (group: string): string => {
    const p50Ms = rows.find((row) => row.group === group && row.who === "ours")?.light?.p50Ms;
    return p50Ms === undefined ? "not measured" : `${p50Ms.toFixed(1)} ms`;
  };
  return [
    `three-step runs beside DBOS with the same GETs: ${times(ratioOf(rows, steps, ["steps", "dbos"], 0))} (goal: 10); ` +
      `beside DBOS with steps that do nothing: ${times(ratioOf(rows, steps, ["checkpoints", "dbos"], 0))}`,
    `three-step runs, of the SQL limit with the same GETs: ${part(ratioOf(rows, steps, ["steps", "sql"], 0))} (goal: 25 %); ` +
      `without them: ${part(ratioOf(rows, steps, ["checkpoints", "sql"], 0))}`,
    `what the GETs alone cost the limit: ${part(ratioOf(rows, ["steps", "sql"], ["checkpoints", "sql"], 0))} of its speed is left`,
    `runs without outside work beside plain pg-boss jobs: ${times(ratioOf(rows, noop, ["noop", "pg-boss"], 0))} (goal: 1); ` +
      `of the SQL limit: ${part(ratioOf(rows, noop, ["noop", "sql"], 0))}`,
    `from trigger to completed at light load, p50: ${light("noop")} without outside work, ${light("steps")} with three steps (goal: 10 ms)`,
  ].join("\n");
}
