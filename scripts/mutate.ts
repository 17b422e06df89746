/**
 * `npm run mutate -- [--seed TEXT] [--count 40] [--file PATH] [--seconds N] [--whole]`: breaks the program in one place at a time, in a
 * copy, and says which test notices. The seed is the commit's hash unless another is given. A run that was cut goes on where it was:
 * what is known of a seed is in `.cache/mutations-<seed>.ndjson`. `--whole` runs the whole fast tier for what survived.
 */
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { urlOf } from "#db/connection/pool.ts";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { keptRunFile, type KeptRun } from "../test/report-run.ts";
import { serverFolder } from "../test/server-folder.ts";
import { ALL_ONLY } from "../test/tiers.ts";
import { importGraph, type Graph } from "./imports/graph.ts";
import { coveringTests, type Covering } from "./mutate/covering-tests.ts";
import { EQUIVALENTS } from "./mutate/equivalents.ts";
import { loads, runTests } from "./mutate/run-tests.ts";
import { nameOf, sample } from "./mutate/sample.ts";
import { openScratch, type Scratch } from "./mutate/scratch.ts";
import { applySite, findSites, type Site } from "./mutate/sites.ts";
import { readSources } from "./prose/sources.ts";

/** CPU seconds of tests for one change. */
const BUDGET_SECONDS = 25;
/** Of the tests that come first: most changes are noticed by them. */
const FIRST_SECONDS = 6;

const root = dirname(import.meta.dirname);
const { values: options } = parseArgs({
  options: {
    seed: { type: "string" },
    count: { type: "string", default: "40" },
    file: { type: "string" },
    seconds: { type: "string" },
    whole: { type: "boolean", default: false },
  },
});
/** Ends what runs, and then the server and the copy of the repository. */
const interruption = new AbortController();
const { signal } = interruption;
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(name, () => interruption.abort(new Interrupted(`Ended by ${name}.`)));

class Interrupted extends Error {}

/** What is known of one change. */
interface Result {
  readonly name: string;
  readonly before: string;
  readonly after: string;
  readonly outcome: "killed" | "SURVIVED" | "does not load" | "equivalent";
  /** The test that noticed, or the reason. */
  readonly by: string;
  /** The whole fast tier has run. */
  readonly whole: boolean;
}

async function main(): Promise<number> {
  const seed =
    options.seed ?? execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" }).trim();
  const texts = new Map(readSources(root).map(({ file, text }) => [file, text]));
  const chosen = sample(listSites(texts), seed, Number(options.count));
  const resumeFile = join(root, `.cache/mutations-${seed.replaceAll(/\W/g, "-").slice(0, 16)}.ndjson`);
  mkdirSync(dirname(resumeFile), { recursive: true });
  const known = readResults(resumeFile);
  const isOpen = (site: Site): boolean => {
    const result = known.get(nameOf(site));
    return result === undefined || (options.whole && result.outcome === "SURVIVED" && !result.whole);
  };
  const open = chosen.filter(isOpen);
  const note = (result: Result): void => {
    known.set(result.name, result);
    appendFileSync(resumeFile, `${JSON.stringify(result)}\n`);
    print(result);
  };
  try {
    if (open.length > 0) await eachOnServer(texts, open, note);
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    console.log(error.message);
  }
  return Math.max(summarise(chosen, known), signal.aborted ? 1 : 0);
}

/** Of the program alone: what ends up in a browser or is generated has other tests. */
function listSites(texts: ReadonlyMap<string, string>): readonly Site[] {
  const files = [...texts].filter(
    ([file]) => /^src\/.*\.ts$/.test(file) && !file.startsWith("src/hosted/browser/"),
  );
  const wanted =
    options.file === undefined ? files : files.filter(([file]) => file.includes(options.file ?? ""));
  return wanted.flatMap(([file, text]) => findSites(file, text));
}

async function eachOnServer(
  texts: ReadonlyMap<string, string>,
  sites: readonly Site[],
  tell: (result: Result) => void,
): Promise<void> {
  const untilMs = performance.now() + Number(options.seconds ?? Infinity) * 1_000;
  const dataDir = mkdtempSync(join(serverFolder(), "latchkey-mutations-"));
  using scratch = openScratch(root);
  const server = await startEmbeddedPostgres({ dataDir });
  try {
    const find = finderOf(texts);
    const database = urlOf(server.ownerConnection);
    for (const site of sites) {
      if (performance.now() > untilMs) return;
      tell(await look(scratch, site, texts.get(site.file) ?? "", { find, database }));
    }
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

type Find = (file: string) => readonly Covering[];

/** Test files that fail in the copy also when nothing is changed, and those that are known to pass. */
const failing = new Set<string>();
const passing = new Set<string>();

async function look(
  scratch: Scratch,
  site: Site,
  text: string,
  { find, database }: { readonly find: Find; readonly database: string },
): Promise<Result> {
  const result = (outcome: Result["outcome"], by: string, whole = false): Result => ({
    name: nameOf(site),
    before: shorten(text.slice(site.start, site.end)),
    after: shorten(site.replacement),
    outcome,
    by,
    whole,
  });
  const line = text.split("\n")[site.line - 1] ?? "";
  const equivalent = EQUIVALENTS.find(
    (each) => each.file === site.file && each.kind === site.kind && line.includes(each.line),
  );
  if (equivalent) return result("equivalent", equivalent.reason);
  const changed = applySite(text, site);
  {
    using _changed = scratch.change(site.file, changed);
    if (!(await loads(scratch.folder, site.file, signal))) return result("does not load", "");
  }
  for (const stage of inStages(find(site.file))) {
    const killer = await findKiller(scratch, { file: site.file, changed }, stage, database);
    if (killer !== null) return result("killed", killer);
  }
  if (!options.whole) return result("SURVIVED", "");
  using _changed = scratch.change(site.file, changed);
  const ended = await runTests(scratch.folder, "whole", { database, signal });
  return ended.kind === "failed" ? result("killed", ended.by, true) : result("SURVIVED", "", true);
}

/** The test of these files that fails because of the change alone; null: none does. */
async function findKiller(
  scratch: Scratch,
  { file, changed }: { readonly file: string; readonly changed: string },
  stage: readonly string[],
  database: string,
): Promise<string | null> {
  for (;;) {
    const files = stage.filter((each) => !failing.has(each));
    if (files.length === 0) return null;
    const change = scratch.change(file, changed);
    const ended = await runTests(scratch.folder, files, { database, signal });
    change[Symbol.dispose]();
    if (ended.kind === "passed") {
      for (const each of files) passing.add(each);
      return null;
    }
    const suspects = ended.file === null ? files : [ended.file];
    if (suspects.every((each) => passing.has(each))) return ended.by;
    const before = await runTests(scratch.folder, suspects, { database, signal });
    for (const each of suspects) (before.kind === "passed" ? passing : failing).add(each);
    if (before.kind === "passed") return ended.by;
    console.error(`left out, because they fail by themselves: ${suspects.join(" ")} (${before.by})`);
  }
}

/** The cheap ones that are the most likely to notice, then the others. */
function inStages(covering: readonly Covering[]): readonly (readonly string[])[] {
  let spent = 0;
  const first = covering.filter(({ cpuSeconds }) => (spent += cpuSeconds) <= FIRST_SECONDS);
  const rest = covering.filter((each) => !first.includes(each));
  return [first, rest].map((stage) => stage.map(({ file }) => file)).filter((files) => files.length > 0);
}

/** By the graph of imports, and by what each file took in the last whole run of the fast tier. */
function finderOf(texts: ReadonlyMap<string, string>): Find {
  const { imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    imports: Record<string, string>;
  };
  const code = new Map([...texts].filter(([file]) => /\.(?:ts|tsx|mjs)$/.test(file)));
  const graph: Graph = importGraph(code, imports, { withPrograms: true });
  const tests = new Map(
    globSync(["test/**/*.test.ts", "test/**/*.e2e.ts"], { cwd: root })
      .filter((file) => !(file in ALL_ONLY))
      .map((file) => [file, code.get(file) ?? ""]),
  );
  const kept = keptRunFile(root, "fast");
  const run = existsSync(kept) ? (JSON.parse(readFileSync(kept, "utf8")) as KeptRun) : { files: [] };
  const times = new Map(run.files.map(({ file, cpuSeconds }) => [file, cpuSeconds]));
  return (file) => {
    const exports = [
      ...(code.get(file) ?? "").matchAll(/^export (?:async )?(?:function|const|class) (\w+)/gm),
    ].flatMap(([, name]) => name ?? []);
    return coveringTests({ file, exports }, tests, graph, { times, budget: BUDGET_SECONDS });
  };
}

function readResults(file: string): Map<string, Result> {
  if (!existsSync(file)) return new Map();
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return new Map(lines.map((line) => JSON.parse(line) as Result).map((result) => [result.name, result]));
}

const shorten = (text: string): string => {
  const flat = text.replaceAll(/\s+/g, " ");
  return flat.length > 90 ? `${flat.slice(0, 87)}...` : flat;
};

function print({ name, before, after, outcome, by }: Result): void {
  console.log(
    `${outcome.padEnd(13)} ${name}\n              ${before}  ->  ${after === "" ? "(nothing)" : after}`,
  );
  if (by !== "") console.log(`              ${by}`);
}

/** 1 when a change survived that is not listed as an equivalent. */
function summarise(chosen: readonly Site[], known: ReadonlyMap<string, Result>): number {
  const results = chosen.flatMap((site) => known.get(nameOf(site)) ?? []);
  const count = (outcome: Result["outcome"]): number =>
    results.filter((result) => result.outcome === outcome).length;
  const survivors = results.filter(({ outcome }) => outcome === "SURVIVED");
  console.log(
    `\n${results.length} of ${chosen.length} changes: ${count("killed")} killed, ${survivors.length} survived, ` +
      `${count("equivalent")} equivalent, ${count("does not load")} do not load`,
  );
  if (results.length < chosen.length) console.log("The same command goes on with the rest.");
  for (const survivor of survivors) print(survivor);
  return survivors.length > 0 ? 1 : 0;
}

process.exitCode = await main();
