import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { styleText } from "node:util";
import { cpuSecondsOf, type FileTime } from "./batch.ts";
import type { FileRecord, TestRecord } from "./record-tests.ts";
import { CPU_SECONDS_MAX, NAMED_ONLY, SLOW_FILES, type Tier } from "./tiers.ts";

const SHOWN_FILES = 10;

/** What the last run of a tier leaves, for `npm run check` and for people who compare two runs. */
export interface KeptRun {
  readonly tier: Tier;
  /** On the clock. */
  readonly seconds: number;
  readonly files: readonly FileTime[];
  readonly tests: readonly TestRecord[];
}

/** Where the last run's record is. */
export const keptRunFile = (projectFolder: string, tier: Tier): string =>
  join(projectFolder, `.cache/tests-${tier}.json`);

export interface FinishedRun {
  readonly projectFolder: string;
  readonly tier: Tier;
  /** What was to run. */
  readonly planned: readonly string[];
  /** Every file of the tier has run, so its record is worth keeping. */
  readonly isWhole: boolean;
  readonly seed: number;
  /** Wall time. */
  readonly seconds: number;
  /** Of the PostgreSQL of the tests; null: it was given, and its time is not ours to count. */
  readonly serverPid: number | null;
  /** Files with a line of JSON for each file and each test. */
  readonly times: string;
  readonly tests: string;
}

/** Prints what the run took and how many tests it had, and keeps it. False when no test has run, or one too few. */
export function reportRun({ tier, seed, seconds, serverPid, ...run }: FinishedRun): boolean {
  const files = readLines<FileTime>(run.times).toSorted((one, other) => other.cpuSeconds - one.cpuSeconds);
  const records = readLines<TestRecord | FileRecord>(run.tests);
  const tests = records.filter((record) => "path" in record);
  const kept: KeptRun = { tier, seconds, files, tests };
  if (run.isWhole) {
    mkdirSync(join(run.projectFolder, ".cache"), { recursive: true });
    writeFileSync(keptRunFile(run.projectFolder, tier), JSON.stringify(kept));
  }
  const server = serverPid === null ? null : cpuSecondsOfTree(serverPid);
  const total = cpuSecondsOf("self") + (server ?? 0);
  console.log(styleText("bold", `\nCPU seconds of the ${Math.min(SHOWN_FILES, files.length)} slowest files`));
  for (const { file, cpuSeconds } of files.slice(0, SHOWN_FILES))
    console.log(`${cpuSeconds.toFixed(1).padStart(7)}  ${file}`);
  console.log(
    `${total.toFixed(0).padStart(7)}  all ${files.length} files` +
      `${server === null ? "" : `, ${server.toFixed(0)} of them PostgreSQL`}; ${seconds.toFixed(0)} s on the clock`,
  );
  const lacked = [...unended(run.planned, records), ...lackedByAll(kept, run)];
  for (const problem of [...tooSlow(kept), ...lacked]) console.log(styleText("red", problem));
  console.log(`tier ${tier}, LATCHKEY_TEST_SEED=${seed}`);
  const count = (outcome: TestRecord["outcome"]): number =>
    tests.filter((test) => test.outcome === outcome).length;
  console.log(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
  return tests.length > 0 && lacked.length === 0;
}

/** Files whose end nobody was told of: a process that goes away takes the rest of its tests with it, and fails nothing. */
export function unended(
  planned: readonly string[],
  records: readonly (TestRecord | FileRecord)[],
): readonly string[] {
  const ended = new Set(records.map((record) => ("ended" in record ? record.ended : "")));
  return planned
    .filter((file) => !ended.has(file))
    .map((file) => `${file} did not come to its end: some of its tests were not told of.`);
}

/** After a whole run of the tier `all`: what the last whole run of the fast one had besides. */
function lackedByAll(
  kept: KeptRun,
  { projectFolder, isWhole }: Pick<FinishedRun, "projectFolder" | "isWhole">,
) {
  const file = keptRunFile(projectFolder, "fast");
  if (kept.tier !== "all" || !isWhole || !existsSync(file)) return [];
  const fast = JSON.parse(readFileSync(file, "utf8")) as KeptRun;
  return missingInAll(fast, kept).map((name) => `${name} runs in the fast tier and not in this one.`);
}

/** Files of the fast tier that take too long, each with what to do. */
export function tooSlow({ tier, files }: KeptRun): readonly string[] {
  if (tier !== "fast") return [];
  return files
    .filter(
      ({ file, cpuSeconds }) =>
        cpuSeconds > CPU_SECONDS_MAX && !(file in SLOW_FILES) && !(file in NAMED_ONLY),
    )
    .map(
      ({ file, cpuSeconds }) =>
        `${file} took ${cpuSeconds.toFixed(1)} CPU seconds; ${CPU_SECONDS_MAX} are allowed. ` +
        "Make it cheaper, move a part to the tier `all`, or give a reason in SLOW_FILES (test/tiers.ts).",
    );
}

/** Names of tests of the fast tier that have not run in the tier `all`, but for the counts and ids in them. */
export function missingInAll(fast: KeptRun, all: KeptRun): readonly string[] {
  const nameOf = ({ path }: TestRecord): string => path.join(" > ");
  const withoutCounts = (name: string): string =>
    name.replaceAll(/\b[a-z]+_0[\dA-Za-z]{20,}/g, "id").replaceAll(/\d[\d,]*/g, "#");
  const known = new Set(all.tests.map((each) => withoutCounts(nameOf(each))));
  return fast.tests.map(nameOf).filter((name) => !known.has(withoutCounts(name)));
}

function readLines<T>(file: string): readonly T[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as T);
}

/** Of a process with its descendants, living ones and those that were waited for. */
function cpuSecondsOfTree(root: number): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    const parent = /^\d+$/.test(name) ? parentOf(Number(name)) : null;
    if (parent !== null) parents.set(Number(name), parent);
  }
  const isBelow = (pid: number | undefined): boolean =>
    pid !== undefined && (pid === root || isBelow(parents.get(pid)));
  return [...parents.keys()].filter(isBelow).reduce((sum, pid) => sum + (tryCpuSecondsOf(pid) ?? 0), 0);
}

function parentOf(pid: number): number | null {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN);
  } catch {
    return null;
  }
}

/** Null when it has ended meanwhile. */
function tryCpuSecondsOf(pid: number): number | null {
  try {
    return cpuSecondsOf(pid);
  } catch {
    return null;
  }
}
