import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { CommandFailed, tell } from "#cli/output.ts";

/** A program of the demo, and the first line it printed. */
export interface Started {
  readonly child: ChildProcess;
  readonly firstLine: string;
}

/** All of a program's environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

const FIRST_LINE_MS = 60_000;
const STOP_MS = 12_000;

const running = new Set<ChildProcess>();
// A second Ctrl-C ends the demo immediately: its programs receive the signal, too, and end by themselves.
process.once("exit", () => running.forEach((child) => child.kill("SIGTERM")));

function spawnProgram(file: string, arguments_: readonly string[], environment: Environment): ChildProcess {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", file, ...arguments_], {
    env: { ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    // Its own process group: Ctrl-C reaches the demo, and the demo stops its programs in order.
    detached: true,
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

/** Starts a TypeScript program with the same Node and waits for its first line. Throws CommandFailed with its output. */
export async function start(
  file: string,
  arguments_: readonly string[],
  environment: Environment,
): Promise<Started> {
  const child = spawnProgram(file, arguments_, environment);
  const errors: string[] = [];
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errors.push(text);
    if (errors.length > 50) errors.shift();
  });
  const lines = createInterface({ input: child.stdout ?? process.stdin });
  const firstLine = await new Promise<string>((resolve, reject) => {
    const fail = (why: string): void => reject(new CommandFailed(`${why}\n${errors.join("").trim()}`));
    const timer = setTimeout(
      () => fail(`${file} did not start in ${FIRST_LINE_MS / 1000} s.`),
      FIRST_LINE_MS,
    );
    lines.once("line", (line) => {
      clearTimeout(timer);
      resolve(line);
    });
    child.once("exit", (code) => {
      clearTimeout(timer);
      fail(`${file} ended with exit code ${code}.`);
    });
    child.once("error", (error) => fail(error.message));
  });
  lines.on("line", () => {});
  return { child, firstLine };
}

/** Runs a program to its end and returns its output. Throws CommandFailed with the output. */
export async function runToEnd(
  file: string,
  arguments_: readonly string[],
  environment: Environment,
): Promise<string> {
  const child = spawnProgram(file, arguments_, environment);
  let output = "";
  let errors = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  if (code !== 0) throw new CommandFailed(`latchkey ${arguments_[0]} failed:\n${errors.trim()}`);
  return output;
}

export async function stop({ child }: Started): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const timer = setTimeout(() => {
    tell("A program of the demo did not stop in time; it is ended now.");
    child.kill("SIGKILL");
  }, STOP_MS);
  await ended;
  clearTimeout(timer);
}
