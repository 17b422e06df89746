import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";

/** What became of test files. */
export type TestsEnded =
  | { readonly kind: "passed" }
  /** The first test that failed, or why none could run. */
  | { readonly kind: "failed"; readonly by: string; readonly file: string | null };

/** A program in the scratch copy, with all that it prints. Throws when `signal` is aborted, after the program has ended. */
export async function run(
  folder: string,
  arguments_: readonly string[],
  {
    environment,
    timeoutMs,
    signal,
  }: {
    readonly environment: Record<string, string>;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly code: number | null; readonly output: string }> {
  signal.throwIfAborted();
  const child: ChildProcess = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", ...arguments_],
    {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...environment },
    },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => (output += text));
  // The runner passes it on to its tests, and ends them.
  const end = (): void => void child.kill("SIGTERM");
  const limit = setTimeout(end, timeoutMs);
  signal.addEventListener("abort", end, { once: true });
  const code = await new Promise<number | null>((done, failed) => {
    child.on("error", failed).on("close", done);
  });
  clearTimeout(limit);
  signal.removeEventListener("abort", end);
  signal.throwIfAborted();
  return { code, output };
}

/** Whether the changed file can be loaded at all: what can't says nothing about the tests. */
export async function loads(folder: string, file: string, signal: AbortSignal): Promise<boolean> {
  const program = `await import(${JSON.stringify(join(folder, file))}); process.exit(0)`;
  const { code } = await run(folder, ["--input-type=module", "--eval", program], {
    environment: {},
    timeoutMs: 120_000,
    signal,
  });
  return code === 0;
}

/** No test waits longer for a change that makes it wait. On a busy machine 25 CPU seconds of tests take minutes. */
const TIMEOUT_MS = 300_000;
/** The whole fast tier. */
const WHOLE_TIMEOUT_MS = 60 * 60_000;

/** Runs these test files, or all of the fast tier, on a server that is up. */
export async function runTests(
  folder: string,
  files: readonly string[] | "whole",
  { database, signal }: { readonly database: string; readonly signal: AbortSignal },
): Promise<TestsEnded> {
  const whole = files === "whole";
  const { code, output } = await run(folder, ["test/run.ts", ...(whole ? [] : files)], {
    environment: { LATCHKEY_TEST_DATABASE: database, FORCE_COLOR: "0", NO_COLOR: "1" },
    timeoutMs: whole ? WHOLE_TIMEOUT_MS : TIMEOUT_MS,
    signal,
  });
  if (code === 0) return { kind: "passed" };
  return { kind: "failed", ...failedTest(output) };
}

/** The innermost test that the report names first, and its file. */
export function failedTest(output: string): { readonly by: string; readonly file: string | null } {
  const named = output
    .split("\n")
    .filter((line) => line.includes("✖ "))
    .map((line) => line.slice(line.indexOf("✖ ") + 2).replace(/ \([\d.]+ms\).*$/, ""));
  const by = named.find((name) => name !== "failing tests:" && !/^test\/\S+\.ts$/.test(name));
  const [, file = null] = /^test at \S*?(test\/\S+\.ts):\d+/m.exec(output) ?? [];
  return { by: by?.trim() ?? "no test came to its end", file };
}
