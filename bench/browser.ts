/**
 * Logging in and reading three pages in a browser, beside the same in a bare script of playwright-core, in turns in one run: the same
 * Chromium, the same target in this process. CPU is that of this process and of the browser's; memory is the proportional set size of
 * the browser's processes, at the end of the last page. Then the same login in a service, from the run's claim to its first page.
 */
import { parseArgs } from "node:util";
import { chromium, type Page } from "playwright-core";
import type { StepConfig } from "#answers/browser/define-step.ts";
import { openTarget, type Target } from "../test/documents/target.ts";
import { EMAIL, openPortal, PASSWORD } from "../test/browser/portal.ts";
import { openProgram } from "../test/browser/program.ts";
import { doSteps, openStage, type Stage } from "../test/browser/stage.ts";
import { openBrowserRuns, timeToPage } from "./browser-runs.ts";
import { renderLines } from "./lines.ts";
import { cpuMsOf, descendantsOf, memoryOf } from "./process-memory.ts";
import { median } from "./runs-latency.ts";

const { values: options } = parseArgs({
  // After the name of the bench.
  args: process.argv.slice(3),
  options: {
    rounds: { type: "string", default: "15" },
    markdown: { type: "boolean" },
    help: { type: "boolean" },
  },
});
if (options.help === true) {
  console.log("npm run bench -- browser [--rounds 15] [--markdown]");
  process.exit(0);
}

const MEBIBYTE = 1_048_576;
const ROWS_READ = 9;
const LOGIN: readonly StepConfig[] = [
  { goto: "/login" },
  { dismiss: { role: "button", name: "Accept all" } },
  { fill: { label: "Email", with: EMAIL } },
  { fill: { label: "Password", with: PASSWORD } },
  { click: { role: "button", name: "Sign in" } },
  { expect: { visible: { role: "heading", name: "Dashboard" } } },
];
const PAGES: readonly StepConfig[] = [
  { goto: "/invoices" },
  {
    repeat: {
      steps: [{ extract: { rows: { css: "tbody tr" }, columns: { no: ".no", total: ".total" } } }],
      while: { enabled: { role: "button", name: "Next" } },
      next: [{ click: { role: "button", name: "Next" } }],
    },
  },
] as unknown as readonly StepConfig[];
/** Six of the login, the page, three times the rows, and two clicks. */
const STEPS = LOGIN.length + 6;

interface Round {
  readonly tookMs: number;
  /** From the call until the first step may begin. */
  readonly startMs: number;
  /** From there until the last row is read, without the end of the browser. */
  readonly stepsMs: number;
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

interface Watch {
  begun(): void;
  atEnd(): void;
}

async function measure(work: (watch: Watch) => Promise<number>): Promise<Round> {
  const [cpu, beganMs] = [process.cpuUsage(), performance.now()];
  let [startMs, stepsMs, browserCpuMs, memoryBytes] = [0, 0, 0, 0];
  const rows = await work({
    begun: () => {
      startMs = performance.now() - beganMs;
    },
    atEnd: () => {
      stepsMs = performance.now() - beganMs - startMs;
      const pids = descendantsOf(process.pid);
      browserCpuMs = pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
      memoryBytes = pids.reduce((sum, pid) => sum + memoryOf(pid), 0);
    },
  });
  if (rows !== ROWS_READ) throw new Error(`${rows} rows were read instead of ${ROWS_READ}`);
  const tookMs = performance.now() - beganMs;
  const { user, system } = process.cpuUsage(cpu);
  return { tookMs, startMs, stepsMs, cpuMs: (user + system) / 1_000 + browserCpuMs, memoryBytes };
}

async function ours(stage: Stage, watch: Watch): Promise<number> {
  return await stage.logIn(async (browser) => {
    watch.begun();
    await doSteps(browser, LOGIN, { place: "login" });
    const { rows } = await doSteps(browser, PAGES);
    watch.atEnd();
    return rows.length;
  });
}

/** What an author would write without Latchkey. */
async function bare(program: string, { url }: Target, watch: Watch): Promise<number> {
  // As root, the sandbox needs another user, which a bare script does not have.
  const chromiumSandbox = process.getuid?.() !== 0;
  const browser = await chromium.launch({ executablePath: program, chromiumSandbox, env: {} });
  try {
    const page = await (await browser.newContext()).newPage();
    watch.begun();
    await page.addLocatorHandler(page.getByRole("button", { name: "Accept all" }), async (found) => {
      await found.click();
    });
    await page.goto(`${url}/login`);
    await page.getByLabel("Email").fill(EMAIL);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Dashboard" }).waitFor();
    await page.goto(`${url}/invoices`);
    const rows = await readAll(page);
    watch.atEnd();
    return rows.length;
  } finally {
    await browser.close();
  }
}

async function readAll(page: Page): Promise<readonly (string | null)[][]> {
  const rows: (string | null)[][] = [];
  for (;;) {
    await page.locator("tbody tr").first().waitFor();
    const before = rows.length;
    rows.push(
      ...(await page
        .locator("tbody tr")
        .evaluateAll((all) =>
          all.map((row) => [".no", ".total"].map((css) => row.querySelector(css)?.textContent ?? null)),
        )),
    );
    const next = page.getByRole("button", { name: "Next" });
    if (!(await next.isEnabled())) return rows;
    await next.click();
    await page.getByText(`INV-${before / 3 + 2}1`).waitFor();
  }
}

/** Each round's own difference and ratio: the machine is not equally fast in all of them. */
const ofPairs = (
  { ours: own, bare: others }: Rounds,
  of: (round: Round) => number,
  compare: (one: number, other: number) => number,
): number => median(own.map((one, index) => compare(of(one), of(others[index] ?? one))));
const difference = (one: number, other: number): number => one - other;
const ratio = (one: number, other: number): number => one / other;
/** Where others use the machine, too, what comes closest to the program's own time. */
const quickest = (values: readonly number[]): number => Math.min(...values);

interface Rounds {
  readonly ours: Round[];
  readonly bare: Round[];
}

const stepsMsOf = ({ stepsMs }: Round): number => stepsMs;
const cpuOf = ({ cpuMs }: Round): number => cpuMs;

await using opened = new AsyncDisposableStack();
const target = opened.use(await openTarget());
openPortal(target);
const stage = opened.use(await openStage(target.url));
const program = opened.adopt(await openProgram(), (each) => each.remove());
const rounds: Rounds = { ours: [], bare: [] };
for (let round = -1; round < Number(options.rounds); round++) {
  const own = async (): Promise<void> =>
    keep(rounds.ours, round, await measure(async (watch) => await ours(stage, watch)));
  const other = async (): Promise<void> =>
    keep(rounds.bare, round, await measure(async (watch) => await bare(program.path, target, watch)));
  for (const work of round % 2 === 0 ? [own, other] : [other, own]) await work();
}

/** The first one loads the driver. */
function keep(kept: Round[], round: number, measured: Round): void {
  if (round >= 0) kept.push(measured);
}

const line = (
  name: string,
  all: readonly Round[],
  pick: (values: readonly number[]) => number,
): readonly string[] => [
  name,
  pick(all.map(({ startMs }) => startMs)).toFixed(0),
  pick(all.map(stepsMsOf)).toFixed(0),
  pick(all.map(({ tookMs }) => tookMs)).toFixed(0),
  pick(all.map(cpuOf)).toFixed(0),
  (pick(all.map(({ memoryBytes }) => memoryBytes)) / MEBIBYTE).toFixed(0),
];
console.log(
  renderLines(
    [
      ["", "start ms", "steps ms", "whole ms", "CPU ms", "PSS MiB"],
      line("Latchkey, median", rounds.ours, median),
      line("bare playwright-core, median", rounds.bare, median),
      line("Latchkey, quickest", rounds.ours, quickest),
      line("bare playwright-core, quickest", rounds.bare, quickest),
    ],
    options.markdown === true,
  ),
);
const [own, other] = [rounds.ours, rounds.bare].map((each) => quickest(each.map(stepsMsOf)));
const more = (one: number, bareOne: number): string => `${((one / bareOne - 1) * 100).toFixed(1)} %`;
console.log(`
Steps: ${more(ofPairs(rounds, stepsMsOf, ratio), 1)} more than the bare script by pairs, ${more(own ?? 0, other ?? 0)} of the quickest (goal: 15 % at most); ${(ofPairs(rounds, stepsMsOf, difference) / STEPS).toFixed(2)} and ${(((own ?? 0) - (other ?? 0)) / STEPS).toFixed(2)} ms a step (goal: 2 ms at most).
CPU: ${ofPairs(rounds, cpuOf, ratio).toFixed(2)} times the bare script's (goal: 1.3 at most). Memory: ${(median(rounds.ours.map(({ memoryBytes }) => memoryBytes)) / MEBIBYTE).toFixed(0)} MiB (goal: 250 at most).`);

const runs = opened.use(await openBrowserRuns(target, program.path));
const toPage = { ours: [] as number[], bare: [] as number[] };
for (let round = -1; round < Number(options.rounds); round++) {
  const ofRun = await runs.claimToPage();
  const ofBare = await timeToPage(target, async () => {
    await measure(async (watch) => await bare(program.path, target, watch));
  });
  if (round < 0) continue;
  toPage.ours.push(ofRun);
  toPage.bare.push(ofBare);
}
const byPairs = median(toPage.ours.map((ms, index) => ms - (toPage.bare[index] ?? 0)));
const waiting = await runs.wait();
console.log(`From a run's claim to its first page: ${byPairs.toFixed(0)} ms more by pairs than the bare script's ${median(toPage.bare).toFixed(0)} ms from its start; of the quickest ${(quickest(toPage.ours) - quickest(toPage.bare)).toFixed(0)} ms more than ${quickest(toPage.bare).toFixed(0)} (goal: 50 ms at most).
${waiting.runs} runs that wait for a browser: ${waiting.processes} processes more, ${(waiting.belowBytes / MEBIBYTE).toFixed(1)} MiB below the worker, ${(waiting.heapBytes / MEBIBYTE).toFixed(1)} MiB of its heap, ${(waiting.rssBytes / MEBIBYTE).toFixed(1)} MiB resident (goal: none).`);
await opened.disposeAsync();
process.exit(0);
