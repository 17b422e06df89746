/**
 * `npm test`, or `npm test -- db worker/claim` for the files whose path contains one of these.
 * One real PostgreSQL in a throw-away folder for all files; node's own runner does the rest, and
 * its totals are the last lines. LATCHKEY_TEST_DATABASE (a URL) names a server to use instead;
 * its user must be allowed to create databases.
 */
import { spawn } from "node:child_process";
import { existsSync, globSync, readdirSync, rmSync, statSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { availableParallelism, tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { urlOf } from "#db/pool.ts";
import { prepareTemplate } from "./database.ts";

const projectFolder = resolve(import.meta.dirname, "..");
const patterns = ["test/**/*.test.ts", "test/**/*.e2e.ts"];
const fileTimeoutMs = 120_000;
const killAfterMs = 10_000;
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

process.exitCode = await main(process.argv.slice(2));

async function main(filters: readonly string[]): Promise<number> {
  const all = globSync(patterns, { cwd: projectFolder }).toSorted();
  const files =
    filters.length === 0 ? all : all.filter((file) => filters.some((filter) => file.includes(filter)));
  if (files.length === 0) {
    console.error(`No test file's path contains ${filters.join(" or ")}.`);
    return 1;
  }
  const given = process.env["LATCHKEY_TEST_DATABASE"];
  if (given !== undefined && given !== "") return await runFiles(files, given);

  await removeLeftOvers();
  const folder = await mkdtemp(join(tmpdir(), `latchkey-run-${process.pid}-`));
  const server = await startEmbeddedPostgres({ dataDir: folder });
  try {
    return await runFiles(files, urlOf(server.connection));
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runFiles(files: readonly string[], database: string): Promise<number> {
  await prepareTemplate({ connectionString: database });
  const options = [
    "--test",
    `--test-timeout=${fileTimeoutMs}`,
    `--test-concurrency=${availableParallelism()}`,
  ];
  // A process group of its own: it gets a terminal's Ctrl-C once, from us, and dies as a whole.
  const child = spawn(process.execPath, [...options, ...files], {
    cwd: projectFolder,
    stdio: "inherit",
    detached: true,
    env: { ...process.env, LATCHKEY_TEST_DATABASE: database },
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
  for (const name of readdirSync(tmpdir())) {
    const pid = /^latchkey-run-(\d+)-/.exec(name)?.[1];
    const folder = join(tmpdir(), name);
    if (pid === undefined || isRunning(Number(pid)) || statSync(folder).uid !== userInfo().uid) continue;
    // To stop a server that runs without its runner: take it over, and leave it as its last user.
    if (existsSync(join(folder, "postgres", "postmaster.pid")))
      await (await startEmbeddedPostgres({ dataDir: folder })).stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
