/**
 * Everything that can be said about the code without running it: types, lint, circles of imports, files that nothing needs, format, unused code, generated
 * files; citations, links and words; and what the last `npm test` took. One line a check; the output of those that fail
 * follows. The tests are `npm test`.
 */
import { spawn } from "node:child_process";
import { realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { styleText } from "node:util";

const root = dirname(import.meta.dirname);
const linted = [
  "src",
  "ui",
  "sdk",
  "test",
  "conformance",
  "scripts",
  "bench",
  "examples",
  "oxlint.config.ts",
];

/** Name, program (a tool of node_modules/.bin, or a script of ours), arguments. */
const CHECKS = [
  ["types", "tsc", ["--noEmit", "--pretty", "false", "-p", "tsconfig.json"]],
  // What runs in end users' browsers knows the DOM, and nothing of Node.
  ["pages", "tsc", ["--noEmit", "--pretty", "false", "-p", "src/hosted/browser/tsconfig.json"]],
  ["dashboard", "tsc", ["--noEmit", "--pretty", "false", "-p", "ui/tsconfig.json"]],
  // As its users' compilers see it.
  ["sdk", "tsc", ["--noEmit", "--pretty", "false", "-p", "sdk/typescript/tsconfig.json"]],
  ["lint", "oxlint", ["--type-aware", "--deny-warnings", "--report-unused-disable-directives", ...linted]],
  ["imports", "scripts/imports.ts", []],
  ["format", "oxfmt", ["--check", ...linted]],
  ["unused", "knip", ["--no-progress"]],
  ["generated", "scripts/generate.ts", ["--check"]],
  ["times", "scripts/test-times.ts", []],
  ["prose", "scripts/prose.ts", []],
] as const;

type Outcome = { name: string; seconds: number; isPassed: boolean; output: string };

function programPath(program: string): string {
  return program.includes("/") ? join(root, program) : realpathSync(join(root, "node_modules/.bin", program));
}

async function run([name, program, options]: (typeof CHECKS)[number]): Promise<Outcome> {
  const started = performance.now();
  const child = spawn(process.execPath, [programPath(program), ...options], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject).on("close", resolve);
  });
  const seconds = (performance.now() - started) / 1000;
  return { name, seconds, isPassed: code === 0, output: Buffer.concat(chunks).toString("utf8") };
}

function line({ name, seconds, isPassed }: Outcome): string {
  const verdict = isPassed ? styleText("green", "ok") : styleText("red", "FAILED");
  return `${name.padEnd(10)} ${seconds.toFixed(1).padStart(5)} s  ${verdict}`;
}

const outcomes = await Promise.all(
  CHECKS.map(async (check) => {
    const outcome = await run(check);
    console.log(line(outcome));
    return outcome;
  }),
);
const failed = outcomes.filter((outcome) => !outcome.isPassed);
for (const { name, output } of failed) console.log(`\n${styleText("bold", name)}\n${output.trimEnd()}`);
if (failed.length > 0) {
  console.log(
    `\n${failed.length} of ${outcomes.length} checks failed: ${failed.map(({ name }) => name).join(", ")}`,
  );
  process.exitCode = 1;
}
