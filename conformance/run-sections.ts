import { globSync } from "node:fs";
import { join } from "node:path";
import { run } from "node:test";
import { styleText } from "node:util";
import { NOT_PROVEN } from "./not-proven.ts";
import { countCases, findCitations } from "./suite.ts";

const FOLDER = join(import.meta.dirname, "sections");

/** In the interface's order. */
const ORDER = [
  ...["conventions", "what-the-service-does", "identifier-prefixes", "credential-session", "credential"],
  ...["authentication-strategy", "blueprint", "run-status-projection", "run-results", "error-object"],
  ...["credential-session-status", "blueprint-run-status", "endpoints", "post-credential-sessions"],
  ...["get-credential-session", "delete-credential", "post-trigger", "get-run-status", "get-run-results"],
  ...["authentication", "events", "errors", "limits", "idempotency", "versioning"],
  "extensions",
];

interface Outcome {
  readonly what: string;
  readonly isPassed: boolean;
}

/** Runs the sections in this process, one after the other, and prints each case with its sentences. */
export async function runSections(only: string): Promise<boolean> {
  const outcomes: Outcome[] = [];
  const stream = run({ files: sectionFiles(only), isolation: "none" });
  // node:test takes an idle process for a finished one, and a case may wait for a request that has yet to come in.
  const keepAlive = setInterval(() => {}, 1_000);
  const report = (data: {
    name: string;
    details: { type?: string | undefined; duration_ms: number; error?: Error };
  }): void => {
    if (data.details.type === "suite") return;
    const isPassed = data.details.error === undefined;
    outcomes.push({ what: data.name, isPassed });
    printCase(data.name, isPassed, data.details.duration_ms, data.details.error);
    if (outcomes.length >= countCases()) clearInterval(keepAlive);
  };
  stream.on("test:start", ({ name, nesting }) => {
    if (nesting === 0) console.log(`\n${styleText("bold", name)}`);
  });
  stream.on("test:pass", report);
  stream.on("test:fail", report);
  for await (const event of stream) void event;
  return summarise(outcomes);
}

function sectionFiles(only: string): readonly string[] {
  const names = globSync("*.ts", { cwd: FOLDER }).map((name) => name.replace(/\.ts$/, ""));
  const unordered = names.filter((name) => !ORDER.includes(name));
  if (unordered.length > 0) throw new Error(`ORDER misses ${unordered.join(", ")}.`);
  return ORDER.filter((name) => names.includes(name) && name.includes(only)).map((name) =>
    join(FOLDER, `${name}.ts`),
  );
}

function printCase(what: string, isPassed: boolean, ms: number, error: Error | undefined): void {
  const verdict = isPassed ? styleText("green", "ok    ") : styleText("red", "FAILED");
  console.log(`  ${verdict} ${what} (${Math.round(ms)} ms)`);
  for (const citation of findCitations(what) ?? []) {
    console.log(styleText("gray", `           ${citation.replace(/^Spec, /, "")}`));
  }
  if (error === undefined) return;
  const cause = error.cause instanceof Error ? error.cause : error;
  console.log((cause.stack ?? cause.message).replaceAll(/^/gm, "           "));
}

function summarise(outcomes: readonly Outcome[]): boolean {
  console.log(`\n${styleText("bold", "Not proven here")}`);
  for (const { sentence, needs } of NOT_PROVEN) console.log(`  needs ${needs}: ${sentence}`);
  const failed = outcomes.filter(({ isPassed }) => !isPassed);
  const proven = new Set(
    outcomes.filter(({ isPassed }) => isPassed).flatMap(({ what }) => findCitations(what) ?? []),
  );
  if (failed.length > 0) {
    console.log(`\n${styleText("bold", "Failed")}`);
    for (const { what } of failed) console.log(`  ${what}`);
  }
  console.log(
    `\n${outcomes.length} cases: ${outcomes.length - failed.length} passed, ${failed.length} failed. ` +
      `${proven.size} sentences and rows of the interface proven, ${NOT_PROVEN.length} not proven here.`,
  );
  return outcomes.length > 0 && failed.length === 0;
}
