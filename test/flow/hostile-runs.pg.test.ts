// Hostile Blueprints and targets: the run fails soon and names its node; other runs and the API don't notice. Design, page 6, G17.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, test, type TestContext } from "node:test";
import { openCaller, type Caller } from "../caller.ts";
import { cpuSecondsOf } from "../../scripts/bench/runs-cpu.ts";
import { install, type ServiceProcess } from "../service.ts";
import { inTier, testInAll, tier } from "../tiers.ts";
import { startHostileTarget, type HostileTarget } from "./hostile-target.ts";

/** On a quiet machine: what a hostile run may take, a good one beside it, the longest of those, and an answer of the API. */
const RUN_MS = 5_000;
const GOOD_RUN_MS = 100;
const LONGEST_GOOD_RUN_MS = 1_000;
const P99_MS = 100;
/** CPU time of the service for each attack that comes to its limit of a second, with the good runs beside it. */
const CPU_SECONDS = 4;
/** Room for machines of all kinds, beside what they make threads wait (`watchWaiting`). */
const MARGIN = 5;

interface Attack {
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

const EXPRESSIONS: readonly Attack[] = [
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

const BOMBS: readonly Attack[] = [
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
  { name: "sheet", nodes: parsed("/sheet", "format: xlsx"), fails: /unpacks to more than 100 MB/ },
  {
    name: "pdf",
    nodes: parsed("/pdf", "format: pdf"),
    fails: /the PDF (took (more|longer) than|is no PDF|gives more|could not)/,
  },
  {
    name: "markup",
    nodes: parsed("/markup", "format: html, rows: b, columns: { text: b }"),
    fails: /the HTML (took (more|longer) than|is nested too deeply|gives more|could not)/,
  },
  {
    name: "pages",
    nodes: fetched("/pages", "records: items, paginate: { cursor: next, param: cursor, max_pages: 20 }"),
    fails: /more pages than max_pages \(20\)/,
  },
  {
    name: "same-page",
    nodes: fetched("/same-page", "records: items, paginate: { link_header: true }"),
    fails: /the same page/,
  },
  {
    name: "drip",
    nodes: fetched("/drip", "records: items, timeout: 1s"),
    fails: /no complete response within|took longer/,
  },
];

let target: HostileTarget;
let installation: Awaited<ReturnType<typeof install>>;
let service: ServiceProcess;
let caller: Caller;
/** Before anything hostile. */
let calm: { readonly runMs: number; readonly p99Ms: number };

const blueprint = (name: string, nodes: string, last: string): string =>
  `blueprint: ${name}\naccount: acme\nhosts: [${target.url}]\nnodes:\n${nodes.replaceAll("TARGET", target.url)}\n  - { id: out, type: output, refKey: out, from: ${last} }`;

before(async () => {
  target = await startHostileTarget();
  installation = await install({ LATCHKEY_LOG_LEVEL: "warn" });
  await installation.apply(
    "account: acme\nrate_limit: off",
    blueprint(
      "good",
      `${given}\n  - { id: made, type: map, from: rows, fields: { name: $uppercase(name), sum: '$sum([n, 1])' } }`,
      "made",
    ),
    blueprint(
      "proto",
      '  - { id: rows, type: http, request: { url: TARGET/proto }, records: $ }\n  - { id: made, type: map, from: rows, fields: { constructor: constructor, toString: $string(toString), valueOf: "1" } }',
      "made",
    ),
    blueprint("names", "  - { id: rows, type: http, request: { url: TARGET/proto }, records: $ }", "rows"),
    blueprint(
      "entities",
      parsed("/entities", 'format: xml, rows: row, columns: { text: ":scope" }').replace(
        "id: bad",
        "id: made",
      ),
      "made",
    ),
    blueprint("function", mapped("{ 'x': $.constructor.constructor('return process')() }"), "bad"),
    blueprint(
      "regex",
      `${given}\n  - { id: made, type: map, from: rows, fields: { n: "$count($match($pad('a', 40, 'a') & '!', /^(a+)+$/))" } }`,
      "made",
    ),
    ...[...EXPRESSIONS, ...BOMBS].map(({ name, nodes }) => blueprint(name, nodes, "bad")),
  );
  service = await installation.serveProcess();
  caller = openCaller(service.url, await installation.createKey("acme"));
  await goodRun();
  const runMs = [await goodRun(), await goodRun(), await goodRun()].toSorted((a, b) => a - b)[1] ?? 0;
  calm = { runMs, p99Ms: (await probeWhile(sleep(1_000))).p99Ms };
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
});

async function trigger(name: string): Promise<string> {
  const { status, body, text } = await caller.post(`/blueprints/${name}/trigger`, {});
  assert.equal(status, 202, text);
  return body.id as string;
}

/** Milliseconds from trigger to completed. */
async function goodRun(): Promise<number> {
  const startedAt = performance.now();
  const { body } = await caller.waitForRun(await trigger("good"), 120_000);
  assert.equal(body.status, "completed");
  return performance.now() - startedAt;
}

/** Requests of another caller, one after the other. */
async function probeWhile(work: Promise<unknown>): Promise<{ p99Ms: number; requests: number }> {
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

async function failureOf(runId: string): Promise<string> {
  const rows = await installation.database.db.query<{ detail: string | null }>(
    "select error_detail as detail from run where id = $1",
    [runId],
  );
  return rows[0]?.detail ?? "";
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
async function goodRunsWhile(attacking: Promise<unknown>): Promise<readonly number[]> {
  const tookMs: number[] = [];
  let over = false;
  const end = (): void => void (over = true);
  attacking.then(end, end);
  do tookMs.push(await goodRun());
  while (!over);
  return tookMs.toSorted((a, b) => a - b);
}

/** What it took from trigger to failed, as it must. */
async function attack(t: TestContext, { name, fails }: Attack): Promise<number> {
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

const atOnce = async (t: TestContext, attacks: readonly Attack[]): Promise<readonly number[]> =>
  await Promise.all(attacks.map(async (each) => await attack(t, each)));

async function oneByOne(t: TestContext, attacks: readonly Attack[]): Promise<readonly number[]> {
  const tookMs: number[] = [];
  for (const each of attacks) tookMs.push(await attack(t, each));
  return tookMs;
}

/** Time, depth, memory; a body that never ends, one that unpacks to too much, pages without an end. */
const REPRESENTATIVES = ["endless", "join", "endless-body", "nested", "sheet", "pages"];
const isRepresentative = ({ name }: Attack): boolean => REPRESENTATIVES.includes(name);

/** With good runs and requests of others beside them. */
async function attackWith(t: TestContext, attacks: readonly Attack[], how: typeof atOnce): Promise<void> {
  const pid = service.child.pid ?? 0;
  const cpuBefore = cpuSecondsOf([pid]);
  const waiting = watchWaiting(pid);
  const attacking = how(t, attacks);
  attacking.catch(() => undefined);
  const beside = goodRunsWhile(attacking);
  const { p99Ms, requests } = await probeWhile(Promise.all([attacking, beside]));
  const waited = waiting();
  const cpuSeconds = cpuSecondsOf([pid]) - cpuBefore;
  const slowestMs = Math.max(...(await attacking));
  const goodMs = await beside;
  const medianMs = goodMs[Math.floor(goodMs.length / 2)] ?? 0;
  const longestMs = goodMs.at(-1) ?? 0;
  t.diagnostic(
    `slowest ${Math.round(slowestMs)} ms; ${goodMs.length} good runs, ${Math.round(medianMs)} ms and at most ` +
      `${Math.round(longestMs)} (before ${Math.round(calm.runMs)}); API p99 ${Math.round(p99Ms)} ms over ${requests} requests ` +
      `(before ${Math.round(calm.p99Ms)}); CPU of the service ${cpuSeconds.toFixed(1)} s, and ${waited.toFixed(1)} times that with ` +
      `waiting for a processor; load average ${loadavg()[0]?.toFixed(1)}`,
  );
  // Times of the clock are for a machine that has nothing else to do.
  if (tier === "fast") return;
  const most = MARGIN * waited;
  assert.ok(slowestMs < most * RUN_MS, `${slowestMs} ms`);
  assert.ok(medianMs < most * GOOD_RUN_MS, `median of good runs ${medianMs} ms`);
  assert.ok(longestMs < most * LONGEST_GOOD_RUN_MS, `a good run took ${longestMs} ms`);
  assert.ok(p99Ms < most * P99_MS, `p99 ${p99Ms} ms`);
  assert.ok(cpuSeconds < MARGIN * CPU_SECONDS * attacks.length, `${cpuSeconds} s`);
  // One after the other: did they queue behind the hostile ones, there would be one or two.
  assert.ok(goodMs.length >= 4, `${goodMs.length} good runs in ${Math.round(slowestMs)} ms`);
}

testInAll(
  "hostile runs at once, which is harder on others",
  "one hostile run at a time fails, and nobody notices",
  { timeout: 400_000 },
  async (t) => await attackWith(t, [...EXPRESSIONS, ...BOMBS], oneByOne),
);

test(
  "hostile expressions fail their runs and nobody else's",
  { timeout: 400_000 },
  async (t) => await attackWith(t, inTier(EXPRESSIONS, isRepresentative), atOnce),
);

test("bombs of a target fail their runs and nobody else's", { timeout: 400_000 }, async (t) => {
  const sentBefore = target.sent.get("/endless") ?? 0;
  await attackWith(t, inTier(BOMBS, isRepresentative), atOnce);
  const sent = (target.sent.get("/endless") ?? 0) - sentBefore;
  assert.ok(sent < 40_000_000, "an endless body is cut off, not read");
});

test("tricks with prototypes, entities and regular expressions do nothing", async () => {
  const resultOf = async (name: string): Promise<unknown> => {
    const id = await trigger(name);
    const { body } = await caller.waitForRun(id, 120_000);
    assert.equal(body.status, "completed", `${name}: ${await failureOf(id)}`);
    const { text } = await caller.get(`/blueprint-runs/${id}/results?deliveryMethod=direct`);
    return (JSON.parse(text) as { results: { out: { records: { data: unknown }[] } } }).results.out.records[0]
      ?.data;
  };
  assert.equal(JSON.stringify(await resultOf("proto")), '{"constructor":"c","toString":"t","valueOf":1}');
  assert.equal(
    JSON.stringify(await resultOf("names")),
    '{"__proto__":{"polluted":1},"constructor":"c","toString":"t"}',
  );
  assert.deepEqual(await resultOf("entities"), { text: "&l9;" });
  assert.deepEqual(await resultOf("regex"), { n: 0 });
  assert.deepEqual(await resultOf("function"), {});
  assert.equal(Reflect.get({}, "polluted"), undefined);
});

testInAll(
  "the watch on threads in expressions/hostile",
  "threads that were ended give everything back",
  {},
  async () => {
    const now = (what: string): number =>
      Number(
        new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync(`/proc/${service.child.pid}/status`, "utf8"))?.[1],
      );
    const before = { threads: now("Threads"), rssMiB: now("VmRSS") / 1_024 };
    for (let round = 0; round < 2; round++)
      await Promise.all(
        ["endless", "recursion", "markup", "sheet"].map(async (name) => {
          const { body } = await caller.waitForRun(await trigger(name), 300_000);
          assert.equal(body.status, "failed");
        }),
      );
    await goodRun();
    const afterwards = { threads: now("Threads"), rssMiB: now("VmRSS") / 1_024 };
    assert.ok(afterwards.threads <= before.threads + 4, JSON.stringify({ before, afterwards }));
    assert.ok(afterwards.rssMiB < before.rssMiB * 1.5 + 100, JSON.stringify({ before, afterwards }));
  },
);
