/**
 * `npm run bench -- data`: large record sets through http → parse → map → validate → output with two handles, carried by a real
 * worker, beside two limits of the same run. docs/performance.md says how to read the table.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { parseArgs } from "node:util";
import type { LimitAnswer, LimitAsked } from "./data-limits-process.ts";
import { openDataStage, type DataRun, type DataStage } from "./data-run.ts";
import { startProgram } from "./processes.ts";

const PARTS = ["json", "ndjson", "csv", "full", "limits", "sort", "dedupe", "join", "secrets"] as const;
type Part = (typeof PARTS)[number];

const USAGE = `npm run bench -- data [options]

  --records a,b   sizes; 10000,100000,1000000 unless given
  --only a,b      some of these parts; json,full,limits unless given:
                    json, ndjson, csv   one document of that format, a mapping of paths and common calls
                    full                json, and a mapping that only JSONata itself can do
                    limits              the two limits, and the mappings on their own
                    sort, dedupe, join  ndjson, then that node; join with as many records
                    secrets             json, by a node with a credential whose login gives 60 values to be looked for
  --markdown      the tables as Markdown
  --json FILE     all numbers as JSON

Goals: 40 % of the first limit; the worker under 300 MB, and no more of it for 1,000,000 records than for 100,000.`;

const { values } = parseArgs({
  // After the name of the bench.
  args: process.argv.slice(3),
  options: {
    records: { type: "string", default: "10000,100000,1000000" },
    only: { type: "string", default: "json,full,limits" },
    markdown: { type: "boolean", default: false },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

const isMarkdown = values.markdown || process.env["npm_config_markdown"] === "true";
const say = (text: string): void => void process.stderr.write(`${text}\n`);

const BLUEPRINTS: Readonly<Record<Exclude<Part, "limits">, string>> = {
  json: "json-simple",
  ndjson: "ndjson-simple",
  csv: "csv-simple",
  full: "json-full",
  sort: "sort",
  dedupe: "dedupe",
  join: "join",
  secrets: "json-secrets",
};

interface Limits {
  readonly parseAndCompress: LimitAnswer;
  readonly plain: LimitAnswer;
  readonly simple: LimitAnswer;
  readonly full: LimitAnswer;
}

function listed<Name extends string>(text: string, names: readonly Name[]): readonly Name[] {
  return text.split(",").map((each) => {
    const found = names.find((name) => name === each.trim());
    if (found === undefined) throw new Error(`There is no part ${each}; see --help`);
    return found;
  });
}

async function measureLimits(records: number): Promise<Limits> {
  const ask = async (asked: LimitAsked): Promise<LimitAnswer> => {
    // A process each: what one leaves on the heap is no part of the next.
    await using limits = startProgram("./data-limits-process.ts");
    return await limits.ask<LimitAnswer>(asked);
  };
  return {
    parseAndCompress: await ask({ limit: "parse-and-compress", records }),
    plain: await ask({ limit: "plain", records }),
    simple: await ask({ limit: "expressions", records, mapping: "simple" }),
    full: await ask({ limit: "expressions", records, mapping: "full" }),
  };
}

const whole = (value: number): string => Math.round(value).toLocaleString("en-US");
const rate = (records: number, { seconds }: { seconds: number }): string => whole(records / seconds);

function table(lines: readonly (readonly string[])[]): string {
  const [heading = [], ...rest] = lines;
  if (isMarkdown) {
    const rule = heading.map((_, index) => (index === 0 ? "---" : "---:"));
    return [heading, rule, ...rest].map((line) => `| ${line.join(" | ")} |`).join("\n");
  }
  const widths = heading.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)));
  return lines.map((line) => line.map((cell, at) => cell.padStart(widths[at] ?? 0)).join("  ")).join("\n");
}

interface Row {
  readonly part: Exclude<Part, "limits">;
  readonly size: number;
  readonly run: DataRun;
  readonly limits: Limits | undefined;
}

function runsTable(rows: readonly Row[]): string {
  const heading = [
    "pipeline",
    "records",
    "records/s",
    "CPU s",
    "idle MiB",
    "median MiB",
    "peak MiB",
    "of parse + Brotli",
  ];
  return table([
    heading,
    ...rows.map(({ part, size, run, limits }) => [
      part,
      whole(size),
      rate(size, run),
      run.cpuSeconds.toFixed(1),
      String(run.idleMiB),
      String(run.medianMiB),
      String(run.peakMiB),
      limits === undefined ? "" : `${Math.round((100 * limits.parseAndCompress.seconds) / run.seconds)} %`,
    ]),
  ]);
}

function limitsTable(limits: ReadonlyMap<number, Limits>): string {
  const heading = [
    "records",
    "parse + Brotli/s",
    "CPU s",
    "plain function/s",
    "our simple mapping/s",
    "our full mapping/s",
  ];
  return table([
    heading,
    ...[...limits].map(([size, { parseAndCompress, plain, simple, full }]) => [
      whole(size),
      rate(size, parseAndCompress),
      parseAndCompress.cpuSeconds.toFixed(1),
      rate(size, plain),
      rate(size, simple),
      rate(size, full),
    ]),
  ]);
}

async function measureRuns(
  stage: DataStage,
  parts: readonly Part[],
  size: number,
  limits: Limits | undefined,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const part of parts) {
    if (part === "limits") continue;
    rows.push({ part, size, run: await stage.measure(BLUEPRINTS[part], size, say), limits });
  }
  return rows;
}

async function bench(): Promise<void> {
  const parts = listed(values.only, PARTS);
  const sizes = values.records.split(",").map(Number);
  const machine = `${availableParallelism()} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
  console.log(
    `${machine}; load average before: ${loadavg()[0]?.toFixed(1)}; worker, database and target share the cores`,
  );
  await using target = startProgram("./data-target-process.ts");
  const url = `http://127.0.0.1:${await target.ask<number>({})}`;
  say("preparing an installation");
  await using stage = await openDataStage(url);
  const limits = new Map<number, Limits>();
  const rows: Row[] = [];
  for (const size of sizes) {
    if (parts.includes("limits")) limits.set(size, await measureLimits(size));
    rows.push(...(await measureRuns(stage, parts, size, limits.get(size))));
  }
  if (rows.length > 0) console.log(`\n${runsTable(rows)}`);
  if (limits.size > 0) console.log(`\n${limitsTable(limits)}`);
  if (values.json !== undefined)
    writeFileSync(values.json, JSON.stringify({ machine, rows, limits: [...limits] }, null, 2));
}

if (values.help) console.log(USAGE);
else await bench();
