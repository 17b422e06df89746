import { must } from "#lib/assert.ts";
import { cpuUsOf } from "./costs.ts";
import { renderLines } from "./lines.ts";
import { GROUPS, ratioOf, type ContestRow } from "./runs-contest.ts";

const whole = (value: number): string => Math.round(value).toLocaleString("en-US");
const share = (value: number | null): string =>
  value === null ? "" : value >= 0.1 ? `${Math.round(value * 100)} %` : `${(value * 100).toFixed(1)} %`;
const fixed = (value: number, digits: number): string =>
  Number.isFinite(value) ? value.toFixed(digits) : "n/m";

export function renderContest(
  rows: readonly ContestRow[],
  workers: readonly number[],
  markdown: boolean,
): string {
  const headings = [
    "",
    ...workers.flatMap((count) => [`runs/s, ${count} worker${count === 1 ? "" : "s"}`, "of the limit"]),
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
          share(ratioOf(rows, [row.group, row.who], [row.group, "sql"], place)),
        ]),
        row.light === null ? "" : fixed(row.light.p50Ms, 1),
        row.light === null ? "" : fixed(row.light.p99Ms, 1),
      ]);
    return lines;
  });
  return renderLines([headings, ...sections], markdown);
}

/** What a run costs, with one worker process (or as few as were measured). */
export function renderRunCosts(rows: readonly ContestRow[], markdown: boolean): string {
  const headings = [
    "a run",
    "worker µs",
    "of it main thread",
    "PostgreSQL µs",
    "together µs",
    "WAL records",
    "WAL bytes",
    "commits",
  ];
  const lines = rows.map(({ title, drains }) => {
    const costs = must(drains[0], "a row has a drain").costs;
    const { processUs, mainUs, postgresUs, walRecords, walBytes, commits } = costs;
    return [
      title,
      fixed(processUs, 0),
      fixed(mainUs, 0),
      fixed(postgresUs, 0),
      fixed(cpuUsOf(costs), 0),
      fixed(walRecords, 1),
      fixed(walBytes, 0),
      fixed(commits, 2),
    ];
  });
  return renderLines([headings, ...lines], markdown);
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
    `three-step runs beside DBOS with the same GETs: ${times(ratioOf(rows, steps, ["steps", "dbos"], 0))} (goal: 7)`,
    `three-step runs, of the SQL limit with the same GETs: ${part(ratioOf(rows, steps, ["steps", "sql"], 0))} (goal: 45 %)`,
    `runs without outside work beside plain pg-boss jobs: ${times(ratioOf(rows, noop, ["noop", "pg-boss"], 0))} (goal: 0.9); ` +
      `of the SQL limit: ${part(ratioOf(rows, noop, ["noop", "sql"], 0))}`,
    `from trigger to completed at light load, p50: ${light("noop")} without outside work, ${light("steps")} with three steps (goal: 8.5 ms)`,
  ].join("\n");
}
