/**
 * Logging in and reading three pages in a browser, beside the same in a bare script of playwright-core, in turns in one run: the same
 * Chromium, the same target in this process. CPU is that of this process and of the browser's; memory is the proportional set size of
 * the browser's processes, at the end of the last page.
 */
import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { chromium, type Page } from "playwright-core";
import type { StepConfig } from "#answers/browser/define-step.ts";
import { openTarget, type Target } from "../test/documents/target.ts";
import { EMAIL, openPortal, PASSWORD } from "../test/browser/portal.ts";
import { openProgram } from "../test/browser/program.ts";
import { doSteps, openStage, type Stage } from "../test/browser/stage.ts";
import { renderLines } from "./lines.ts";

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
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

interface Watch {
  begun(): void;
  atEnd(): void;
}

async function measure(work: (watch: Watch) => Promise<number>): Promise<Round> {
  const [cpu, beganMs] = [process.cpuUsage(), performance.now()];
  let [startMs, browserCpuMs, memoryBytes] = [0, 0, 0];
  const rows = await work({
    begun: () => {
      startMs = performance.now() - beganMs;
    },
    atEnd: () => {
      const pids = descendantsOf(process.pid);
      browserCpuMs = pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
      memoryBytes = pids.reduce((sum, pid) => sum + memoryOf(pid), 0);
    },
  });
  if (rows !== ROWS_READ) throw new Error(`${rows} rows were read instead of ${ROWS_READ}`);
  const tookMs = performance.now() - beganMs;
  const { user, system } = process.cpuUsage(cpu);
  return { tookMs, startMs, cpuMs: (user + system) / 1_000 + browserCpuMs, memoryBytes };
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

/** Fields of `/proc/PID/stat` after the name. */
const statOf = (pid: number): readonly string[] | null => {
  try {
    return readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
  } catch {
    return null;
  }
};

function descendantsOf(root: number): readonly number[] {
  const children = Map.groupBy(
    readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : [])),
    (pid) => Number(statOf(pid)?.[1] ?? 0),
  );
  const below = (pid: number): readonly number[] =>
    (children.get(pid) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(root);
}

/** With that of its children that have ended. The unit of the kernel is 10 ms. */
const cpuMsOf = (pid: number): number =>
  (statOf(pid) ?? []).slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * 10, 0);

function memoryOf(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, "latin1");
    return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const medianOf = (rounds: readonly Round[], name: keyof Round): number =>
  median(rounds.map((each) => each[name]));

await using opened = new AsyncDisposableStack();
const target = opened.use(await openTarget());
openPortal(target);
const stage = opened.use(await openStage(target.url));
const program = opened.adopt(await openProgram(), (each) => each.remove());
const rounds = { ours: [] as Round[], bare: [] as Round[] };
for (let round = -1; round < Number(options.rounds); round++) {
  const one = await measure(async (watch) => await ours(stage, watch));
  const other = await measure(async (watch) => await bare(program.path, target, watch));
  // The first one loads the driver.
  if (round < 0) continue;
  rounds.ours.push(one);
  rounds.bare.push(other);
}
const line = (name: string, all: readonly Round[]): readonly string[] => [
  name,
  medianOf(all, "startMs").toFixed(0),
  (medianOf(all, "tookMs") - medianOf(all, "startMs")).toFixed(0),
  medianOf(all, "tookMs").toFixed(0),
  medianOf(all, "cpuMs").toFixed(0),
  (medianOf(all, "memoryBytes") / 1_048_576).toFixed(0),
];
console.log(
  renderLines(
    [
      ["", "start ms", "steps ms", "whole ms", "CPU ms", "PSS MiB"],
      line("Latchkey", rounds.ours),
      line("bare playwright-core", rounds.bare),
    ],
    options.markdown === true,
  ),
);
const stepsMs = (all: readonly Round[]): number => medianOf(all, "tookMs") - medianOf(all, "startMs");
const over = stepsMs(rounds.ours) - stepsMs(rounds.bare);
const startOver = medianOf(rounds.ours, "startMs") - medianOf(rounds.bare, "startMs");
const cpu = medianOf(rounds.ours, "cpuMs") / medianOf(rounds.bare, "cpuMs");
console.log(`
Steps: ${((over / stepsMs(rounds.bare)) * 100).toFixed(1)} % more than the bare script (goal: 15 % at most), ${(over / STEPS).toFixed(2)} ms a step (goal: 2 ms at most).
Start: ${startOver.toFixed(0)} ms more than the bare script (goal: 50 ms at most).
CPU: ${cpu.toFixed(2)} times the bare script's (goal: 1.3 at most). Memory: ${(medianOf(rounds.ours, "memoryBytes") / 1_048_576).toFixed(0)} MiB (goal: 250 at most).`);
process.exit(0);
