/**
 * `npm test` runs the fast tier, `npm run test:all` everything (test/tiers.ts), and `npm test -- db worker/claim` the files whose
 * path contains one of these, of either tier. One real PostgreSQL in a throw-away folder serves all files; several files share
 * a process; node's own runner does the rest. LATCHKEY_TEST_DATABASE (a URL) names a server to use instead; its user must be
 * allowed to create databases. LATCHKEY_TEST_SEED repeats the order of an earlier run.
 */
import { execFile, spawn } from "node:child_process";
import { existsSync, globSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { availableParallelism, tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { isRunning } from "#lib/process-mark.ts";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { urlOf } from "#db/connection/pool.ts";
import { makeBatches, newSeed } from "./batches.ts";
import { prepareTemplate } from "./database.ts";
import { findProgram } from "./hosted/chromium.ts";
import { reportRun } from "./report-run.ts";
import { serverFolder } from "./server-folder.ts";
import { FLAGS } from "./service-process.ts";
import { ALL_ONLY, NAMED_ONLY, type Tier } from "./tiers.ts";
import { postmasterOf } from "./postmaster.ts";

const projectFolder = resolve(import.meta.dirname, "..");
const patterns = ["test/**/*.test.ts", "test/**/*.e2e.ts"];
const compileCache = join(projectFolder, "node_modules/.cache/latchkey-tests");
const testTimeoutMs = 120_000;
/** A test waits for other processes nearly half of its time. */
const lanes = 2 * availableParallelism();
const killAfterMs = 10_000;
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

process.exitCode = await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<number> {
  const tier: Tier = words.includes("--all") ? "all" : "fast";
  const filters = words.filter((word) => word !== "--all");
  const isWhole = filters.length === 0;
  const files = globSync(patterns, { cwd: projectFolder })
    .toSorted()
    .filter((file) => (isWhole ? isOfTier(file, tier) : filters.some((filter) => file.includes(filter))));
  if (files.length === 0) {
    console.error(`No test file's path contains ${filters.join(" or ")}.`);
    return 1;
  }
  await removeLeftOvers();
  const folder = await mkdtemp(join(tmpdir(), `latchkey-run-${process.pid}-`));
  const dataDir = await mkdtemp(join(serverFolder(), `latchkey-run-${process.pid}-`));
  try {
    return await withServer(
      dataDir,
      async (database, serverPid) => await runFiles({ tier, isWhole, files, database, folder, serverPid }),
    );
  } finally {
    for (const each of [folder, dataDir]) rmSync(each, { recursive: true, force: true });
  }
}

function isOfTier(file: string, tier: Tier): boolean {
  return !(file in NAMED_ONLY) && (tier === "all" || !(file in ALL_ONLY));
}

/** `serverPid` is null for a server that was given. */
async function withServer<T>(
  dataDir: string,
  work: (database: string, serverPid: number | null) => Promise<T>,
): Promise<T> {
  const given = process.env["LATCHKEY_TEST_DATABASE"];
  if (given !== undefined && given !== "") return await work(given, null);
  const server = await startEmbeddedPostgres({ dataDir });
  try {
    return await work(urlOf(server.ownerConnection), postmasterOf(dataDir).pid);
  } finally {
    await server.stop();
  }
}

interface Run {
  readonly tier: Tier;
  /** Nothing was filtered out. */
  readonly isWhole: boolean;
  readonly files: readonly string[];
  readonly database: string;
  readonly folder: string;
  readonly serverPid: number | null;
}

async function runFiles({ tier, isWhole, files, database, folder, serverPid }: Run): Promise<number> {
  await prepareTemplate({ connectionString: database });
  if (!existsSync(compileCache)) await compileProgram();
  // Unpacked once for all files that open a browser, where none is installed.
  const browser = files.some((file) => file.endsWith(".e2e.ts")) ? await findProgram() : null;
  const seed = newSeed();
  const records = { times: join(folder, "times.ndjson"), tests: join(folder, "tests.ndjson") };
  const entries = makeBatches(files, seed).map((batch, index) => {
    const entry = join(folder, `${String(index).padStart(3, "0")}-${batch.name}.ts`);
    const call = [projectFolder, batch.files, records.times].map((value) => JSON.stringify(value)).join(", ");
    // A file with a process of its own has tests that are defined after something was awaited, which only promises lead to.
    const first = batch.files.length > 1 ? ["test/untracked-promises.ts"] : [];
    const lines = [...first, "test/batch.ts"].map(
      (file) => `await import(${JSON.stringify(join(projectFolder, file))})`,
    );
    writeFileSync(entry, `const { runBatch } = (${lines.join(", ")});\nrunBatch(${call});\n`);
    return entry;
  });
  const startedAt = performance.now();
  const reporter = join(folder, "reporter.mjs");
  // Node takes a reporter by its default export, and we have none.
  const recorder = JSON.stringify(join(projectFolder, "test/record-tests.ts"));
  writeFileSync(reporter, `export { recordTests as default } from ${recorder};\n`);
  const code = await runNode(entries, [reporter, records.tests], {
    LATCHKEY_TEST_DATABASE: database,
    LATCHKEY_TEST_TIER: tier,
    LATCHKEY_TEST_BROWSER: browser === null ? "" : JSON.stringify(browser),
    NODE_COMPILE_CACHE: compileCache,
  });
  browser?.remove();
  const seconds = (performance.now() - startedAt) / 1_000;
  const run = { projectFolder, tier, planned: files, isWhole, seed, seconds, serverPid, ...records };
  return reportRun(run) ? code : Math.max(code, 1);
}

/**
 * In a new clone: a process keeps what it has compiled when it ends, so the first ones would compile the program each for itself, and those that
 * tests kill would again. With the flags of services and without, as the cache is by them.
 */
async function compileProgram(): Promise<void> {
  const compile = join(projectFolder, "src/compile.mjs");
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache };
  await Promise.all(
    [FLAGS, []].map(
      async (flags) => await promisify(execFile)(process.execPath, [...flags, compile], { env }),
    ),
  );
}

/** Runs the files and gives the exit code of node's runner. */
async function runNode(
  files: readonly string[],
  [reporter, records]: readonly [reporter: string, records: string],
  environment: Readonly<Record<string, string>>,
): Promise<number> {
  mkdirSync(compileCache, { recursive: true });
  const options = [
    "--test",
    `--test-timeout=${testTimeoutMs}`,
    `--test-concurrency=${lanes}`,
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    `--test-reporter=${reporter}`,
    `--test-reporter-destination=${records}`,
  ];
  // A process group of its own: it gets a terminal's Ctrl-C once, from us, and dies as a whole.
  const child = spawn(process.execPath, [...options, ...files], {
    cwd: projectFolder,
    stdio: "inherit",
    detached: true,
    env: { ...process.env, ...environment },
  });
  const forward = (signal: NodeJS.Signals): void => {
    killGroup(child.pid, signal);
    setTimeout(() => killGroup(child.pid, "SIGKILL"), killAfterMs).unref();
  };
  for (const signal of signals) process.on(signal, forward);
  try {
    return await new Promise<number>((done, failed) => {
      child.on("error", failed);
      child.on("exit", (code) => done(code ?? 1));
    });
  } finally {
    for (const signal of signals) process.off(signal, forward);
  }
}

function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It is gone already.
  }
}

/** Servers and folders of runs that were killed: their runner's pid is in the folder's name. */
async function removeLeftOvers(): Promise<void> {
  for (const parent of new Set([tmpdir(), serverFolder()])) {
    for (const name of readdirSync(parent)) {
      const pid = /^latchkey-run-(\d+)-/.exec(name)?.[1];
      const folder = join(parent, name);
      if (pid === undefined || isRunning(Number(pid)) || statSync(folder).uid !== userInfo().uid) continue;
      // To stop a server that runs without its runner: take it over, and leave it as its last user.
      if (existsSync(join(folder, "postgres", "postmaster.pid")))
        await (await startEmbeddedPostgres({ dataDir: folder })).stop();
      rmSync(folder, { recursive: true, force: true });
    }
  }
}
