/**
 * `npm run bench -- api`: how fast the public API is, against two limits that are measured in the same run on the same
 * machine: a bare `node:http` server that answers a constant of the same size, and the same rows written or read by
 * group-committed SQL, each alone and both together. docs/performance.md says how to read the tables.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { compareApis } from "./api-against.ts";
import { loadOf, measure, type Measured, type Timing } from "./measure.ts";
import { serveOpenly, watchMemory } from "./memory.ts";
import { SCENARIOS, type RequestKind, type Scenario } from "./scenarios.ts";
import { install } from "../test/service.ts";
import { renderPairs } from "./pairs.ts";
import { makeDatabasesOn, openServer } from "./server.ts";
import { openStage, type Stage } from "./stage.ts";
import { USED_UP } from "./used-up.ts";
import type { Look, ProfileLine } from "./serve-process.ts";
import { renderCosts, renderMemory, renderTable } from "./table.ts";

const USAGE = `npm run bench -- api [options]

  --quick            one short round of each, no memory watch: minutes become seconds, and noise counts
  --only a,b         some of: ${SCENARIOS.map(({ id }) => id).join(", ")}; with --against also
                     ${USED_UP.map(({ id }) => id).join(", ")} (with --seconds 1: they use up what they name)
  --connections n    64 unless given
  --rounds n         3 unless given; the medians count
  --seconds n        of each measurement, 6 unless given
  --minutes n        of the memory watch, 5 unless given; 0 for none
  --statements       which statements PostgreSQL's time goes to, for each request; each then costs a little more
  --against FOLDER   no limits: what a request costs here, and in another checkout whose packages are installed, in turns;
                     --rounds, 7 unless given, are pairs
  --with NAME=VALUE  the same for this checkout with a setting, beside itself without it; several with --with again
  --starts n         of both, for --against and --with, each first in every other one; 1 unless given, 4 for --with
  --markdown         the tables as Markdown
  --json FILE        all numbers as JSON
  --processes n      \`serve --processes n\`; 1 unless given
  --profile          no table: where the CPU of the service goes, by function`;

const { values } = parseArgs({
  // After the name of the bench.
  args: process.argv.slice(3),
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    connections: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    minutes: { type: "string" },
    statements: { type: "boolean", default: false },
    against: { type: "string" },
    with: { type: "string", multiple: true },
    starts: { type: "string" },
    markdown: { type: "boolean", default: false },
    json: { type: "string" },
    processes: { type: "string" },
    profile: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

/** npm keeps options for itself when they are not behind `--`; some of ours still reach us in its environment. */
const isQuick = values.quick || process.env["npm_config_quick"] === "true";
const isMarkdown = values.markdown || process.env["npm_config_markdown"] === "true";

const ROOT = resolve(import.meta.dirname, "..");
const PROFILE_LINES = 45;
/** Of the whole load in the memory watch, so that it goes on for minutes without filling the disk. */
const WATCH_SHARE = 0.25;

function numberOf(text: string | undefined, otherwise: number): number {
  const value = Number(text ?? otherwise);
  if (!Number.isFinite(value) || value < 0) throw new Error(`${text} is no number; see --help`);
  return value;
}

const timing: Timing = {
  connections: numberOf(values.connections, 64),
  rounds: numberOf(
    values.rounds,
    values.against === undefined && values.with === undefined ? (isQuick ? 1 : 3) : isQuick ? 5 : 7,
  ),
  warmSeconds: isQuick ? 1 : 2,
  seconds: numberOf(values.seconds, isQuick ? 2 : 6),
};

function readSetting(text: string): readonly [string, string] {
  const [, name, value] = /^([A-Z_]+)=(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new Error(`${text} is not NAME=VALUE`);
  return [name, value];
}

const say = (text: string): void => void process.stderr.write(`${text}\n`);

function chosenOf<Kind extends RequestKind>(kinds: readonly Kind[]): readonly Kind[] {
  if (values.only === undefined) return kinds;
  return values.only.split(",").map((id) => {
    const kind = kinds.find((each) => each.id === id.trim());
    if (!kind) throw new Error(`There is no scenario ${id} here; see --help`);
    return kind;
  });
}

const chosenScenarios = (): readonly Scenario[] => chosenOf(SCENARIOS);

async function measureAll(stage: Stage): Promise<readonly Measured[]> {
  const service = await stage.serve({}, numberOf(values.processes, 1));
  const rows: Measured[] = [];
  for (const scenario of chosenScenarios()) {
    const answering = { url: service.url, pid: service.child.pid ?? 0 };
    const row = await measure(stage, answering, scenario, timing, values.statements);
    say(
      `${scenario.title}: ${Math.round(row.perSecond)}/s, ${Math.round(row.ofTogether * 100)} % of bare and SQL together, ` +
        `${Math.round(row.ratio * 100)} % of the lower one`,
    );
    rows.push(row);
  }
  await service.end();
  return rows;
}

async function watch(stage: Stage, rows: readonly Measured[], minutes: number): Promise<void> {
  const scenarios = SCENARIOS.flatMap((scenario) => {
    const row = rows.find(({ id }) => id === scenario.id);
    return row ? [{ scenario, rate: row.perSecond * WATCH_SHARE }] : [];
  });
  say(`watching memory for ${minutes} min`);
  const memory = await watchMemory(stage, scenarios, timing, minutes);
  console.log(`\n${renderMemory(memory)}`);
  if (values.json !== undefined)
    writeFileSync(values.json, JSON.stringify({ machine, timing, rows, memory }, null, 2));
}

async function profile(stage: Stage): Promise<void> {
  await using service = await serveOpenly(stage);
  for (const scenario of chosenScenarios()) {
    const look: Look = { want: "profile", seconds: timing.warmSeconds + timing.seconds };
    const [load, lines] = await Promise.all([
      loadOf(stage, service.url, scenario, timing, null),
      service.ask<readonly ProfileLine[]>(look),
    ]);
    console.log(`\n${scenario.title}: ${Math.round(load.perSecond)}/s under the profiler`);
    for (const { what, share } of lines.slice(0, PROFILE_LINES)) {
      console.log(`${(share * 100).toFixed(1).padStart(5)} %  ${what}`);
    }
  }
}

const machine = {
  cores: availableParallelism(),
  model: cpus()[0]?.model ?? "unknown",
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
};

if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
say("preparing an installation");
if (values.against === undefined && values.with === undefined) await measureHere();
else await compare(values.against ?? ROOT);

async function measureHere(): Promise<void> {
  await using server = await openServer({ autovacuum: true, statements: values.statements });
  makeDatabasesOn(server);
  // On a fast machine more than a million runs wait at the end, as nothing executes them.
  await using installation = await install({ LATCHKEY_LOG_LEVEL: "warn", LATCHKEY_QUEUED_RUNS: "off" });
  const stage = await openStage(server, installation);
  if (values.profile) return await profile(stage);
  const [version] = await server.db.query<{ text: string }>(
    "select current_setting('server_version') as text",
  );
  const rows = await measureAll(stage);
  console.log(
    `${machine.cores} × ${machine.model}, ${machine.memoryGiB} GiB, Node ${machine.node}, PostgreSQL ${version?.text} (fsync on); ` +
      `${timing.connections} connections; load, service and database share the cores\n`,
  );
  console.log(`${renderTable(rows, isMarkdown)}\n\n${renderCosts(rows, isMarkdown)}`);
  for (const { title, statements } of rows) if (statements !== "") console.log(`\n${title}\n${statements}`);
  if (values.json !== undefined)
    writeFileSync(values.json, JSON.stringify({ machine, timing, rows }, null, 2));
  const minutes = numberOf(values.minutes, isQuick ? 0 : 5);
  if (minutes > 0) await watch(stage, rows, minutes);
}

async function compare(folder: string): Promise<void> {
  const settings = Object.fromEntries((values.with ?? []).map(readSetting));
  const starts = numberOf(values.starts, values.with === undefined ? 1 : 4);
  const sides = { here: ROOT, there: folder, settings, starts };
  const compared = await compareApis(sides, chosenOf([...SCENARIOS, ...USED_UP]), timing, say);
  console.log(`\n${renderPairs(compared, isMarkdown)}`);
  if (values.json !== undefined)
    writeFileSync(values.json, JSON.stringify({ machine, timing, folder, compared }, null, 2));
}
