import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, openCaller } from "../test/caller.ts";
import { install, type Installation } from "../test/service.ts";
import { MAPPINGS, type DataFormat, type Mapping } from "./data-records.ts";
import { cpuSecondsOf } from "./cpu.ts";

/** One pipeline at one size. */
export interface DataRun {
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** VmRSS of the worker before it had the run, in the middle of all samples, and its VmHWM. */
  readonly idleMiB: number;
  readonly medianMiB: number;
  readonly peakMiB: number;
  readonly records: number;
  readonly valid: number;
}

export interface DataStage extends AsyncDisposable {
  readonly installation: Installation;
  /** A new worker process carries one run. */
  measure(blueprint: string, records: number, say: (text: string) => void): Promise<DataRun>;
}

const SAMPLE_MS = 100;
const RUN_MS_MAX = 3_600_000;
const RESPONSE_BYTES_MAX = 2_000_000_000;

const FORMATS: readonly DataFormat[] = ["json", "ndjson", "csv"];

function source(targetUrl: string, format: DataFormat): string {
  return `  - id: fetched
    type: http
    request: { url: "${targetUrl}/${format}", query: { records: "{{ $metadata.records }}" } }
    save: file
    max_bytes: ${RESPONSE_BYTES_MAX}
    timeout: 30m
  - { id: rows, type: parse, from: fetched, format: ${format}${format === "json" ? ", records: items" : ""} }`;
}

const STRATEGY = "strat_bench";

/** A login that gives many values that are looked for in all that comes back. */
const strategy = (targetUrl: string): string => `strategy: ${STRATEGY}
account: acme
hosts: [${targetUrl}]
fields: [{ key: password, type: password }]
login:
  type: http
  steps:
    - request: { method: POST, url: /login, form: { p: "{{ $credential.password }}" } }
      extract: { secrets: { json: secrets } }`;

const WITH_SECRETS = "json-secrets";

/** The records of a node with a credential. */
const sourceWithSecrets = `  - id: rows
    type: http
    credential: it
    request: { url: /json, query: { records: "{{ $metadata.records }}" } }
    records: items
    max_bytes: ${RESPONSE_BYTES_MAX}
    timeout: 30m`;

const heading = (name: string, targetUrl: string): string => `blueprint: ${name}
account: acme
${name === WITH_SECRETS ? `credentials: { it: { strategy: ${STRATEGY} } }` : `hosts: [${targetUrl}]`}
timeout: 1h
metadata: [{ name: records, required: true }]
nodes:`;

function pipeline(
  targetUrl: string,
  format: DataFormat,
  mapping: Mapping,
  name = `${format}-${mapping}`,
): string {
  const fields = Object.entries(MAPPINGS[mapping])
    .map(([name, expression]) => `      ${name}: ${JSON.stringify(csvField(expression, format))}`)
    .join("\n");
  return `${heading(name, targetUrl)}
${name === WITH_SECRETS ? sourceWithSecrets : source(targetUrl, format)}
  - id: lines
    type: map
    from: rows
    fields:
${fields}
  - id: checked
    type: validate
    from: lines
    schema: { type: object, required: [number, total], properties: { total: { type: number }, number: { type: string, pattern: "^[0-9-]+$" } } }
    rules: [{ assert: total >= 0, field: total, message: The total is negative }]
  - id: out
    type: output
    refKey: out
    handles:
      valid: { from: checked, where: $isValid }
      invalid: { from: checked, where: $not($isValid) }`;
}

/** A CSV has no fields in fields, and its values are texts. */
const csvField = (expression: string, format: DataFormat): string =>
  format === "csv"
    ? expression
        .replaceAll("supplier.name", "supplier")
        .replaceAll("supplier.country", "country")
        .replaceAll("$not(paid)", 'paid != "true"')
    : expression;

function ordering(targetUrl: string, name: "sort" | "join" | "dedupe"): string {
  const node = {
    sort: "{ id: ordered, type: sort, from: rows, by: [{ expression: due_date, order: descending }, number] }",
    dedupe: "{ id: ordered, type: dedupe, from: rows, by: [number, id] }",
    join: "{ id: ordered, type: join, from: rows, with: others, on: id }",
  }[name];
  return `${heading(name, targetUrl)}
${source(targetUrl, "ndjson")}
${name === "join" ? "  - { id: others, type: map, from: rows, fields: { id: id, second: total } }\n" : ""}  - ${node}
  - { id: out, type: output, refKey: out, from: ordered }`;
}

/** A turn for each record, and a request in each twentieth: what the target answers quickest. */
const looping = (targetUrl: string): string => `${heading("loop", targetUrl)}
${source(targetUrl, "ndjson")}
  - id: turns
    type: loop
    for_each: rows
    concurrency: 10
    steps:
      - { id: one, type: http, when: $index % 20 = 0, request: { url: "${targetUrl}/login" }, records: "{ 'number': $count(secrets) }" }
    gives: "{ 'number': number, 'other': $steps.one.number }"
  - { id: out, type: output, refKey: out, from: turns }`;

/** `ofWorker`: settings of the workers alone. */
export async function openDataStage(
  targetUrl: string,
  ofWorker: Readonly<Record<string, string>> = {},
): Promise<DataStage> {
  await using opened = new AsyncDisposableStack();
  const installation = opened.use(await install({ LATCHKEY_LOG_LEVEL: "warn" }));
  await installation.apply(
    "account: acme\nrate_limit: off",
    ...FORMATS.map((format) => pipeline(targetUrl, format, "simple")),
    pipeline(targetUrl, "json", "full"),
    strategy(targetUrl),
    pipeline(targetUrl, "json", "simple", WITH_SECRETS),
    ...(["sort", "dedupe", "join"] as const).map((name) => ordering(targetUrl, name)),
    looping(targetUrl),
  );
  const apiKey = await installation.createKey("acme");
  const api = await installation.serveProcess({}, ["api"]);
  const caller = openCaller(api.url, apiKey);
  const credential = await connect(caller, STRATEGY, { password: "correct-horse" });
  const kept = opened.move();
  const measure: DataStage["measure"] = async (blueprint, records, say) => {
    const worker = await installation.serveProcess(ofWorker, ["worker"]);
    const pid = worker.child.pid ?? 0;
    await sleep(1_000);
    const idleMiB = memoryOf(pid, "VmRSS");
    const cpuBefore = cpuSecondsOf([pid]);
    const startedAt = performance.now();
    const triggered = await caller.post(`/blueprints/${blueprint}/trigger`, {
      records: String(records),
      ...(blueprint === WITH_SECRETS && { credential_id: credential }),
    });
    if (triggered.status !== 202)
      throw new Error(`The trigger was answered ${triggered.status}: ${triggered.text}`);
    const samples: number[] = [];
    let over = false;
    const sampling = (async () => {
      for (; !over; await sleep(SAMPLE_MS)) samples.push(memoryOf(pid, "VmRSS"));
    })();
    const { body } = await caller.waitForRun(triggered.body.id, RUN_MS_MAX);
    const seconds = (performance.now() - startedAt) / 1_000;
    over = true;
    await sampling;
    const run = {
      seconds,
      cpuSeconds: cpuSecondsOf([pid]) - cpuBefore,
      idleMiB,
      medianMiB: samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? 0,
      peakMiB: memoryOf(pid, "VmHWM"),
    };
    await worker.end();
    if (body.status !== "completed")
      throw new Error(`The run ended as ${body.status}: ${await failure(installation)}`);
    const totals = await countResults(installation, body.id);
    say(`  ${blueprint}, ${records} records: ${seconds.toFixed(1)} s, at most ${run.peakMiB} MiB`);
    return { ...run, ...totals };
  };
  return { installation, measure, [Symbol.asyncDispose]: async () => await kept.disposeAsync() };
}

async function failure({ database }: Installation): Promise<string> {
  const rows = await database.db.query<{ detail: string | null }>(
    "select error_detail as detail from run order by created_at desc limit 1",
  );
  return rows[0]?.detail ?? "";
}

async function countResults(
  { database }: Installation,
  runId: string,
): Promise<{ records: number; valid: number }> {
  const rows = await database.db.query<{ key: string; total: number }>(
    "select key, total_records as total from run_result where run_id = $1",
    [runId],
  );
  const sum = (list: typeof rows): number => list.reduce((total, row) => total + Number(row.total), 0);
  return { records: sum(rows), valid: sum(rows.filter(({ key }) => key !== "out.invalid")) };
}

function memoryOf(pid: number, what: "VmRSS" | "VmHWM"): number {
  try {
    const [, kib] = new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Math.round(Number(kib ?? 0) / 1_024);
  } catch {
    return 0;
  }
}
