import assert from "node:assert/strict";
import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runCommand as runInKeptProcess, withoutProgress } from "../service-process.ts";
import type { CommandResult, Installation } from "../service.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAIN = join(ROOT, "src/main.mjs");

export type Environment = Readonly<Record<string, string>>;

export interface Result {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command of an installation that must end with this exit code. */
export async function runCommand(
  installation: Pick<Installation, "command">,
  exitCode: number,
  arguments_: readonly string[],
): Promise<CommandResult> {
  const result = await installation.command(...arguments_);
  assert.equal(result.code, exitCode, `latchkey ${arguments_.join(" ")}: ${result.stdout}${result.stderr}`);
  return result;
}

/** A program under way. */
export interface Running {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Resolves when standard output holds a line that matches; throws when the program ends before. */
  line(pattern: RegExp): Promise<string>;
  readonly ended: Promise<Result>;
}

/** The surroundings without anything of a Latchkey, and what the test gives. */
export function environmentOf(own: Environment): Record<string, string> {
  const inherited = Object.entries(process.env).filter(
    ([name, value]) => value !== undefined && !name.startsWith("LATCHKEY_") && name !== "DATABASE_URL",
  ) as [string, string][];
  return { ...Object.fromEntries(inherited), ...own };
}

/** Starts `latchkey …`, with standard input closed unless `options` says otherwise. */
export function startLatchkey(
  arguments_: readonly string[],
  environment: Environment,
  options: SpawnOptions = {},
): Running {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", MAIN, ...arguments_], {
    stdio: ["ignore", "pipe", "pipe"],
    ...options,
    env: environmentOf(environment),
  });
  return observe(child);
}

/**
 * Runs `latchkey …` to its end, in a process that is kept for the next command: a tenth of what a start takes. `latchkeyProcess` is for
 * tests whose subject is how a process starts and ends.
 */
export const latchkey = async (
  arguments_: readonly string[],
  environment: Environment,
  options: { readonly cwd?: string } = {},
): Promise<CommandResult> => await runInKeptProcess(arguments_, environment, options.cwd);

/** Runs `latchkey …` to its end, in a process of its own. */
export async function latchkeyProcess(
  arguments_: readonly string[],
  environment: Environment,
  options: SpawnOptions = {},
): Promise<Result> {
  return await startLatchkey(arguments_, environment, options).ended;
}

const live = new Set<ChildProcess>();
// What a failed test has left running would keep its file from ending.
process.once("exit", () => live.forEach((child) => child.kill("SIGKILL")));

export function observe(child: ChildProcess): Running {
  live.add(child);
  child.once("exit", () => live.delete(child));
  let stdout = "";
  let stderr = "";
  const waiting = new Set<() => void>();
  const look = (): void => waiting.forEach((wake) => wake());
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    look();
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = new Promise<Result>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr: withoutProgress(stderr) }));
  });
  const line = async (pattern: RegExp): Promise<string> =>
    await new Promise<string>((resolve, reject) => {
      const wake = (): void => {
        const found = stdout
          .split("\n")
          .slice(0, -1)
          .find((each) => pattern.test(each));
        if (found === undefined) return;
        waiting.delete(wake);
        resolve(found);
      };
      waiting.add(wake);
      wake();
      ended.then((result) => reject(new Error(`ended before ${pattern}: ${JSON.stringify(result)}`)), reject);
    });
  return { child, stdout: () => stdout, stderr: () => stderr, line, ended };
}

/** The URL in `serve`'s first line. */
export async function urlOf(service: Running): Promise<string> {
  const first = await service.line(/./);
  const url = /https?:\/\/\S+/.exec(first)?.[0];
  if (url === undefined) throw new Error(`The first line names no URL: ${first}`);
  return url;
}

export function newFolder(): string {
  return mkdtempSync(join(tmpdir(), "latchkey-cli-"));
}

/** Pids of the live processes whose command line, or one of whose variables, holds the text. */
export function processesWith(text: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => ["cmdline", "environ"].some((file) => readProc(pid, file).includes(text)))
    .map(Number);
}

function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
