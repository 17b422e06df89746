/** Hostile Blueprints and targets, and good runs beside them. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestContext } from "node:test";
import { cpuSecondsOf } from "../../bench/cpu.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install, type ServiceProcess } from "../service.ts";
import { startHostileTarget, type HostileTarget } from "./hostile-target.ts";

export interface Attack {
  readonly name: string;
  /** The node `bad`, and what it reads. */
  readonly nodes: string;
  readonly fails: RegExp;
}

const given = "  - { id: rows, type: http, request: { url: TARGET/good }, records: $ }";
const mapped = (expression: string): string =>
  `${given}\n  - { id: bad, type: map, from: rows, expression: ${JSON.stringify(expression)} }`;
const fetched = (path: string, more: string): string =>
  `  - { id: bad, type: http, request: { url: "TARGET${path}" }, retry: { attempts: 1 }, ${more} }`;
const parsed = (path: string, more: string): string =>
  `  - { id: file, type: http, request: { url: "TARGET${path}" }, save: file, max_bytes: 20000000 }\n  - { id: bad, type: parse, from: file, ${more} }`;

export const EXPRESSIONS: readonly Attack[] = [
  { name: "endless", nodes: mapped("($f := function($x){ $f($x) }; $f(1))"), fails: /took longer than 1 s/ },
  {
    name: "recursion",
    nodes: mapped("($f := function($x){ 1 + $f($x) }; $f(1))"),
    fails: /recurses too deeply|took longer/,
  },
  { name: "pad", nodes: mapped("{ 'x': $pad('x', 4e8) }"), fails: /10000000 characters/ },
  { name: "range", nodes: mapped("{ 'x': [1..1e9] }"), fails: /too long/ },
  {
    name: "join",
    nodes: mapped("{ 'x': $join([1..900000].$pad('x', 1000)) }"),
    fails: /characters|memory|took longer/,
  },
  {
    name: "filter",
    nodes: `${given}\n  - { id: bad, type: filter, from: rows, where: "($f := function(){ $f() }; $f())" }`,
    fails: /took longer than 1 s/,
  },
];

export const BOMBS: readonly Attack[] = [
  { name: "gzip", nodes: fetched("/gzip", "records: $"), fails: /over 10000000 bytes, decompressed/ },
  { name: "brotli", nodes: fetched("/brotli", "records: $"), fails: /over 10000000 bytes, decompressed/ },
  { name: "endless-body", nodes: fetched("/endless", "records: items"), fails: /over 10000000 bytes/ },
  {
    name: "nested",
    nodes: fetched("/nested", "records: $"),
    fails: /nested deeper than 500 levels|is not JSON/,
  },
  {
    name: "nested-list",
    nodes: fetched("/nested", "parse: { format: json }"),
    fails: /nested deeper than 500 levels/,
  },
  { name: "many", nodes: fetched("/many", "parse: { format: json }"), fails: /is not JSON/ },
  { name: "columns", nodes: fetched("/columns", "parse: { format: csv }"), fails: /columns/ },
  { name: "sheet", nodes: parsed("/sheet", "format: xlsx"), fails: /decompresses to more than 100 MB/ },
  {
    name: "pdf",
    nodes: parsed("/pdf", "format: pdf"),
    fails: /the PDF (took (more|longer) than|is not a PDF|produces more|could not)/,
  },
  {
    name: "markup",
    nodes: parsed("/markup", "format: html, rows: b, columns: { text: b }"),
    fails: /the HTML (took (more|longer) than|is nested too deeply|produces more|could not)/,
  },
  {
    name: "pages",
    nodes: fetched("/pages", "records: items, paginate: { cursor: next, param: cursor, max_pages: 20 }"),
    fails: /more pages than max_pages \(20\)/,
  },
  {
    name: "same-page",
    nodes: fetched("/same-page", "records: items, paginate: { link_header: true }"),
    fails: /the same next page/,
  },
  {
    name: "drip",
    nodes: fetched("/drip", "records: items, timeout: 1s"),
    fails: /no complete response within|took longer/,
  },
];

const blueprint = (target: HostileTarget, name: string, nodes: string, last: string): string =>
  `blueprint: ${name}\naccount: acme\nhosts: [${target.url}]\nnodes:\n${nodes.replaceAll("TARGET", target.url)}\n  - { id: out, type: output, refKey: out, from: ${last} }`;

function documentsOf(target: HostileTarget): readonly string[] {
  const document = (name: string, nodes: string, last: string): string =>
    blueprint(target, name, nodes, last);
  return [
    "account: acme\nrate_limit: off",
    document(
      "good",
      `${given}\n  - { id: made, type: map, from: rows, fields: { name: $uppercase(name), sum: '$sum([n, 1])' } }`,
      "made",
    ),
    document(
      "proto",
      '  - { id: rows, type: http, request: { url: TARGET/proto }, records: $ }\n  - { id: made, type: map, from: rows, fields: { constructor: constructor, toString: $string(toString), valueOf: "1" } }',
      "made",
    ),
    document("names", "  - { id: rows, type: http, request: { url: TARGET/proto }, records: $ }", "rows"),
    document(
      "entities",
      parsed("/entities", 'format: xml, rows: row, columns: { text: ":scope" }').replace(
        "id: bad",
        "id: made",
      ),
      "made",
    ),
    document("function", mapped("{ 'x': $.constructor.constructor('return process')() }"), "bad"),
    document(
      "regex",
      `${given}\n  - { id: made, type: map, from: rows, fields: { n: "$count($match($pad('a', 40, 'a') & '!', /^(a+)+$/))" } }`,
      "made",
    ),
    ...[...EXPRESSIONS, ...BOMBS].map(({ name, nodes }) => document(name, nodes, "bad")),
  ];
}

/** A service, and a target that does its worst. */
export interface HostileStage extends AsyncDisposable {
  readonly target: HostileTarget;
  readonly service: ServiceProcess;
  readonly caller: Caller;
  readonly trigger: (name: string) => Promise<string>;
  readonly failureOf: (runId: string) => Promise<string>;
  /** Milliseconds from trigger to completed. */
  readonly goodRun: () => Promise<number>;
}

export async function openHostileStage(): Promise<HostileStage> {
  await using opened = new AsyncDisposableStack();
  const target = opened.use(await startHostileTarget());
  const installation = opened.use(await install({ LATCHKEY_LOG_LEVEL: "warn" }));
  await installation.apply(...documentsOf(target));
  const service = await installation.serveProcess();
  const caller = openCaller(service.url, await installation.createKey("acme"));
  const trigger = async (name: string): Promise<string> => {
    const { status, body, text } = await caller.post(`/blueprints/${name}/trigger`, {});
    assert.equal(status, 202, text);
    return body.id as string;
  };
  const kept = opened.move();
  return {
    target,
    service,
    caller,
    trigger,
    failureOf: async (runId) => {
      const rows = await installation.database.db.query<{ detail: string | null }>(
        "select error_detail as detail from run where id = $1",
        [runId],
      );
      return rows[0]?.detail ?? "";
    },
    goodRun: async () => {
      const startedAt = performance.now();
      const { body } = await caller.waitForRun(await trigger("good"), 120_000);
      assert.equal(body.status, "completed");
      return performance.now() - startedAt;
    },
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

/** Requests of another caller, one after the other. */
async function probeWhile(
  { caller }: HostileStage,
  work: Promise<unknown>,
): Promise<{ p99Ms: number; requests: number }> {
  let over = false;
  const ended = work.finally(() => (over = true));
  ended.catch(() => undefined);
  const tookMs: number[] = [];
  while (!over) {
    const startedAt = performance.now();
    const { status } = await caller.get("/blueprint-runs/run_of_nobody/status");
    assert.equal(status, 404);
    tookMs.push(performance.now() - startedAt);
    await sleep(10);
  }
  await ended;
  const sorted = tookMs.toSorted((a, b) => a - b);
  return { p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0, requests: sorted.length };
}

/**
 * How many times their CPU time the service's threads took from its start to the end of the watch: what else the machine did, and what
 * they did to each other, made them wait.
 */
function watchWaiting(pid: number): () => number {
  const seen = new Map<string, { readonly ranNs: number; readonly waitedNs: number }>();
  const begun = new Map<string, { readonly ranNs: number; readonly waitedNs: number }>();
  const look = (): void => {
    for (const id of tasksOf(pid)) {
      const now = scheduled(`/proc/${pid}/task/${id}/schedstat`);
      if (now === null) continue;
      if (!begun.has(id)) begun.set(id, seen.size === 0 ? now : { ranNs: 0, waitedNs: 0 });
      seen.set(id, now);
    }
  };
  look();
  // Threads that end take their numbers with them.
  const timer = setInterval(look, 50);
  return () => {
    clearInterval(timer);
    look();
    let ranNs = 0;
    let waitedNs = 0;
    for (const [id, now] of seen) {
      ranNs += now.ranNs - (begun.get(id)?.ranNs ?? 0);
      waitedNs += now.waitedNs - (begun.get(id)?.waitedNs ?? 0);
    }
    return ranNs === 0 ? 1 : 1 + waitedNs / ranNs;
  };
}

function tasksOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function scheduled(file: string): { readonly ranNs: number; readonly waitedNs: number } | null {
  try {
    const [ranNs = 0, waitedNs = 0] = readFileSync(file, "utf8").split(" ").map(Number);
    return { ranNs, waitedNs };
  } catch {
    return null;
  }
}

/** One good run after the other until `attacking` is over, and one at least; what each took. */
async function goodRunsWhile(
  { goodRun }: HostileStage,
  attacking: Promise<unknown>,
): Promise<readonly number[]> {
  const tookMs: number[] = [];
  let over = false;
  const end = (): void => void (over = true);
  attacking.then(end, end);
  do tookMs.push(await goodRun());
  while (!over);
  return tookMs.toSorted((a, b) => a - b);
}

/** What it took from trigger to failed, as it must. */
async function attack(
  { caller, trigger, failureOf }: HostileStage,
  t: TestContext,
  { name, fails }: Attack,
): Promise<number> {
  const startedAt = performance.now();
  const id = await trigger(name);
  const { body } = await caller.waitForRun(id, 300_000);
  const tookMs = performance.now() - startedAt;
  const detail = await failureOf(id);
  t.diagnostic(`${name}: ${Math.round(tookMs)} ms: ${detail}`);
  assert.equal(body.status, "failed", name);
  assert.match(detail, /^Node bad: /, name);
  assert.match(detail, fails, name);
  return tookMs;
}

export type How = (
  stage: HostileStage,
  t: TestContext,
  attacks: readonly Attack[],
) => Promise<readonly number[]>;

export const atOnce: How = async (stage, t, attacks) =>
  await Promise.all(attacks.map(async (each) => await attack(stage, t, each)));

export const oneByOne: How = async (stage, t, attacks) => {
  const tookMs: number[] = [];
  for (const each of attacks) tookMs.push(await attack(stage, t, each));
  return tookMs;
};

/** What attacks took, and good runs and requests of others beside them. */
export interface Measured {
  readonly slowestMs: number;
  readonly goodRuns: number;
  readonly medianMs: number;
  readonly longestMs: number;
  readonly p99Ms: number;
  readonly requests: number;
  /** Of the service. */
  readonly cpuSeconds: number;
  /** How many times that with waiting for a processor. */
  readonly waited: number;
}

export async function attackWith(
  stage: HostileStage,
  t: TestContext,
  attacks: readonly Attack[],
  how: How,
): Promise<Measured> {
  const pid = stage.service.child.pid ?? 0;
  const cpuBefore = cpuSecondsOf([pid]);
  const waiting = watchWaiting(pid);
  const attacking = how(stage, t, attacks);
  attacking.catch(() => undefined);
  const beside = goodRunsWhile(stage, attacking);
  const { p99Ms, requests } = await probeWhile(stage, Promise.all([attacking, beside]));
  const waited = waiting();
  const cpuSeconds = cpuSecondsOf([pid]) - cpuBefore;
  const slowestMs = Math.max(...(await attacking));
  const goodMs = await beside;
  const medianMs = goodMs[Math.floor(goodMs.length / 2)] ?? 0;
  const longestMs = goodMs.at(-1) ?? 0;
  t.diagnostic(
    `slowest ${Math.round(slowestMs)} ms; ${goodMs.length} good runs, ${Math.round(medianMs)} ms and at most ` +
      `${Math.round(longestMs)}; API p99 ${Math.round(p99Ms)} ms over ${requests} requests; ` +
      `CPU of the service ${cpuSeconds.toFixed(1)} s, and ${waited.toFixed(1)} times that with waiting for a processor; ` +
      `load average ${loadavg()[0]?.toFixed(1)}`,
  );
  return { slowestMs, goodRuns: goodMs.length, medianMs, longestMs, p99Ms, requests, cpuSeconds, waited };
}
