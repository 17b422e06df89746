/**
 * `npm run bench -- runs`: how fast runs are carried, beside other engines and beside hand-written SQL, in the same rounds on
 * the same machine. docs/performance.md says how to read the tables.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { GROUPS, runContest, type ContestOptions, type GroupId } from "./runs-contest.ts";
import type { EngineName } from "./runs-engine.ts";
import { measureGrowth, renderGrowth } from "./runs-growth.ts";
import { renderRunMemory, watchRunMemory } from "./runs-memory.ts";
import { openRunStage, type RunStage } from "./runs-ours.ts";
import { renderPairs } from "./pairs.ts";
import { compareRuns } from "./runs-against.ts";
import { PackagesMissing } from "../test/npm-packages.ts";
import { installPeers } from "./runs-packages.ts";
import { profileRuns } from "./runs-profile.ts";
import { renderContest, renderGoals, renderRunCosts } from "./runs-table.ts";
import { measureWaiting, renderWaiting } from "./runs-waiting.ts";
import { measureWebhooks, renderWebhooks } from "./runs-webhooks.ts";
import { startTarget } from "./runs-target.ts";
import { makeDatabasesOn, openServer, type BenchServer } from "./server.ts";

const PARTS = ["ours", "peers", "growth", "waiting", "webhooks", "memory"] as const;
const PEERS: readonly EngineName[] = ["graphile-worker", "pg-boss", "dbos"];

const USAGE = `npm run bench -- runs [options]

  --only a,b         some of these parts; all but profile unless given:
                       ours     our runs beside SQL by hand, the limit
                       peers    the same, beside ${PEERS.join(", ")} too
                       growth   drains beside 10,000 and beside many finished runs
                       waiting  what many waiting runs cost, and other runs beside them
                       webhooks runs whose events an endpoint gets, beside runs without one
                       memory   memory over minutes of steady load
                       profile  where the CPU of one of our workers goes, by function
  --work a,b         some of: ${GROUPS.map(({ id, title }) => `${id} (${title})`).join(", ")}
  --quick            one short round of each: noise counts
  --without a,b      leave out some of: ${PEERS.join(", ")}
  --workers a,b      numbers of worker processes; 1,2 unless given
  --concurrency n    runs at once in one worker process; 64 unless given
  --rounds n         3 unless given; the medians count
  --seconds n        of each drain, 5 unless given
  --light n          seconds at 30 triggers a second, 10 unless given; 0 for none
  --finished n       of growth, 3,000,000 unless given (100,000 with --quick)
  --waiting n        of waiting, 100,000 unless given (5,000 with --quick)
  --load n           of webhooks: also runs that arrive at this share of the rate, such as 0.5; 0, unless given, for none
  --minutes n        of memory, 10 unless given (a quarter with --quick)
  --against FOLDER   no limits and no peers: what a run costs here, and in another checkout whose packages are installed,
                     in turns; --rounds, 7 unless given, are pairs
  --markdown         the tables as Markdown
  --json FILE        all numbers as JSON

pg-boss and DBOS are no dependencies of the project: the bench installs them into node_modules/.cache when it needs them.`;

const { values } = parseArgs({
  // After the name of the bench.
  args: process.argv.slice(3),
  options: {
    only: { type: "string" },
    work: { type: "string" },
    quick: { type: "boolean", default: false },
    without: { type: "string", default: "" },
    workers: { type: "string", default: "1,2" },
    concurrency: { type: "string", default: "64" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    light: { type: "string" },
    finished: { type: "string" },
    waiting: { type: "string" },
    load: { type: "string" },
    minutes: { type: "string" },
    against: { type: "string" },
    markdown: { type: "boolean", default: false },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

/** npm keeps options for itself when they are not behind `--`; some of ours still reach us in its environment. */
const isQuick = values.quick || process.env["npm_config_quick"] === "true";
const isMarkdown = values.markdown || process.env["npm_config_markdown"] === "true";

const say = (text: string): void => void process.stderr.write(`${text}\n`);

function numberOf(text: string | undefined, otherwise: number): number {
  const value = Number(text ?? otherwise);
  if (!Number.isFinite(value) || value < 0) throw new Error(`${text} is no number; see --help`);
  return value;
}

function listOf<Name extends string>(text: string, names: readonly Name[], what: string): readonly Name[] {
  return text
    .split(",")
    .filter((each) => each.trim() !== "")
    .map((each) => {
      const found = names.find((name) => name === each.trim());
      if (found === undefined) throw new Error(`There is no ${what} ${each}; see --help`);
      return found;
    });
}

const machine = {
  cores: availableParallelism(),
  model: cpus()[0]?.model ?? "unknown",
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
  loadBefore: loadavg()[0],
};

const ROOT = resolve(import.meta.dirname, "..");
const parts = listOf(values.only ?? PARTS.join(","), [...PARTS, "profile"] as const, "part");
const measured: Record<string, unknown> = { machine };

function contestOptions(targetUrl: string): ContestOptions {
  const without = listOf(values.without, PEERS, "engine");
  const peers = parts.includes("peers") ? PEERS.filter((engine) => !without.includes(engine)) : [];
  return {
    rounds: numberOf(values.rounds, isQuick ? 1 : 3),
    warmSeconds: isQuick ? 0.5 : 2,
    seconds: numberOf(values.seconds, isQuick ? 2 : 5),
    workers: values.workers.split(",").map((count) => numberOf(count, 1)),
    groups:
      values.work === undefined
        ? GROUPS.map(({ id }) => id)
        : listOf<GroupId>(
            values.work,
            GROUPS.map(({ id }) => id),
            "work",
          ),
    peers: ["sql", ...peers],
    lightRate: 30,
    lightSeconds: numberOf(values.light, isQuick ? 2 : 10),
    concurrency: numberOf(values.concurrency, 64),
    targetUrl,
  };
}

async function contest(stage: RunStage, options: ContestOptions): Promise<void> {
  if (options.peers.some((engine) => engine === "pg-boss" || engine === "dbos")) installPeers();
  const rows = await runContest(stage, options, say);
  measured["contest"] = { options, rows };
  const others = rows.flatMap(({ rounds }) => rounds.flat().map(({ otherCores }) => otherCores));
  console.log(`\n${renderContest(rows, options.workers, isMarkdown)}\n\n${renderRunCosts(rows, isMarkdown)}`);
  console.log(`\n${renderGoals(rows)}`);
  console.log(
    `anything else on the machine had ${Math.max(...others).toFixed(1)} cores at most during a drain`,
  );
}

async function grow(server: BenchServer, options: ContestOptions): Promise<void> {
  const growth = { ...options, few: 10_000, many: numberOf(values.finished, isQuick ? 100_000 : 3_000_000) };
  const rows = await measureGrowth(server, growth, say);
  measured["growth"] = { options: growth, rows };
  console.log(`\n${renderGrowth(rows, growth)}`);
}

async function wait(server: BenchServer, options: ContestOptions): Promise<void> {
  const waiting = {
    ...options,
    waiting: numberOf(values.waiting, isQuick ? 5_000 : 100_000),
    idleSeconds: isQuick ? 5 : 20,
  };
  const rows = await measureWaiting(server, waiting, say);
  measured["waiting"] = { options: waiting, rows };
  console.log(`\n${renderWaiting(rows, waiting.waiting, isMarkdown)}`);
}

async function hook(stage: RunStage, options: ContestOptions): Promise<void> {
  const rows = await measureWebhooks(stage, { ...options, load: numberOf(values.load, 0) }, say);
  measured["webhooks"] = rows;
  console.log(`\n${renderWebhooks(rows, isMarkdown)}`);
}

async function remember(stage: RunStage, options: ContestOptions): Promise<void> {
  const minutes = numberOf(values.minutes, isQuick ? 0.25 : 10);
  say(`watching memory for ${minutes} min`);
  const memory = await watchRunMemory(stage, options, minutes);
  measured["memory"] = memory;
  console.log(`\n${renderRunMemory(memory)}`);
}

async function compare(folder: string, options: ContestOptions): Promise<void> {
  const pairs = { ...options, rounds: numberOf(values.rounds, isQuick ? 5 : 7) };
  const compared = await compareRuns({ here: ROOT, there: folder }, pairs, say);
  measured["compared"] = { folder, compared };
  console.log(`\n${renderPairs(compared, isMarkdown)}`);
  writeMeasured();
}

function writeMeasured(): void {
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(measured, null, 2));
}

async function bench(): Promise<void> {
  say("preparing an installation");
  await using target = await startTarget();
  const options = contestOptions(target.url);
  if (values.against !== undefined) return await compare(values.against, options);
  await using server = await openServer({ autovacuum: true, statements: false });
  makeDatabasesOn(server);
  await using stage = await openRunStage(server, options);
  const [version] = await stage.installation.database.db.query<{ text: string }>(
    "select current_setting('server_version') || ', fsync ' || current_setting('fsync') as text",
  );
  console.log(
    `${machine.cores} × ${machine.model}, ${machine.memoryGiB} GiB, Node ${machine.node}, PostgreSQL ${version?.text}; ` +
      `load average before: ${machine.loadBefore?.toFixed(1)}; workers, database and target share the cores`,
  );
  if (parts.includes("ours") || parts.includes("peers")) await contest(stage, options);
  if (parts.includes("growth")) await grow(server, options);
  if (parts.includes("waiting")) await wait(server, options);
  if (parts.includes("webhooks")) await hook(stage, options);
  if (parts.includes("memory")) await remember(stage, options);
  if (parts.includes("profile")) console.log(await profileRuns(stage, options));
  writeMeasured();
}

if (values.help) console.log(USAGE);
else {
  try {
    await bench();
  } catch (error) {
    if (!(error instanceof PackagesMissing)) throw error;
    say(error.message);
    process.exitCode = 1;
  }
}
