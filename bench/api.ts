/**
 * `npm run bench -- api`: how fast the public API is, against two limits that are measured in the same run on the same
 * machine: a bare `node:http` server that answers a constant of the same size, and the same rows written or read by
 * group-committed SQL alone. docs/performance.md says how to read the table.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { loadOf, measure, type Measured, type Timing } from "./measure.ts";
import { serveOpenly, watchMemory } from "./memory.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";
import { openStage, type Stage } from "./stage.ts";
import type { Look, ProfileLine } from "./serve-process.ts";
import { renderMemory, renderTable } from "./table.ts";

const USAGE = `npm run bench -- api [options]

  --quick            one short round of each, no memory watch: minutes become seconds, and noise counts
  --only a,b         some of: ${SCENARIOS.map(({ id }) => id).join(", ")}
  --connections n    64 unless given
  --rounds n         3 unless given; the medians count
  --seconds n        of each measurement, 6 unless given
  --minutes n        of the memory watch, 5 unless given; 0 for none
  --markdown         the table as Markdown
  --json FILE        all numbers as JSON
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
    markdown: { type: "boolean", default: false },
    json: { type: "string" },
    profile: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

/** npm keeps options for itself when they are not behind `--`; some of ours still reach us in its environment. */
const isQuick = values.quick || process.env["npm_config_quick"] === "true";
const isMarkdown = values.markdown || process.env["npm_config_markdown"] === "true";

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
  rounds: numberOf(values.rounds, isQuick ? 1 : 3),
  warmSeconds: isQuick ? 1 : 2,
  seconds: numberOf(values.seconds, isQuick ? 2 : 6),
};

const say = (text: string): void => void process.stderr.write(`${text}\n`);

function chosenScenarios(): readonly Scenario[] {
  if (values.only === undefined) return SCENARIOS;
  return values.only.split(",").map((id) => {
    const scenario = SCENARIOS.find((each) => each.id === id.trim());
    if (!scenario) throw new Error(`There is no scenario ${id}; see --help`);
    return scenario;
  });
}

async function measureAll(stage: Stage): Promise<readonly Measured[]> {
  const service = await stage.serve();
  const rows: Measured[] = [];
  for (const scenario of chosenScenarios()) {
    const row = await measure(stage, service.url, scenario, timing);
    say(
      `${scenario.title}: ${Math.round(row.perSecond)}/s, ${Math.round(row.ratio * 100)} % of the lower limit`,
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
await using stage = await openStage();
if (values.profile) await profile(stage);
else {
  const [version] = await stage.installation.database.db.query<{ text: string }>(
    "select current_setting('server_version') as text",
  );
  const rows = await measureAll(stage);
  console.log(
    `${machine.cores} × ${machine.model}, ${machine.memoryGiB} GiB, Node ${machine.node}, PostgreSQL ${version?.text} (fsync on); ` +
      `${timing.connections} connections; load, service and database share the cores\n`,
  );
  console.log(renderTable(rows, isMarkdown));
  if (values.json !== undefined)
    writeFileSync(values.json, JSON.stringify({ machine, timing, rows }, null, 2));
  const minutes = numberOf(values.minutes, isQuick ? 0 : 5);
  if (minutes > 0) await watch(stage, rows, minutes);
}
