// docs/decisions/0009: a run that loses its lease three times without finishing a step fails, and no other run does.
// A process that dies takes the leases of all its runs: those beside a poison run must not be given up with it.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../eventually.ts";
import { isDead, untilDead } from "../processes.ts";
import type { Caller } from "../caller.ts";
import { blueprint } from "../documents/bench.ts";
import type { ServiceProcess } from "../service.ts";
import { testInAll } from "../tiers.ts";
import { afterFaults, callerOf, openFaultStage, type FaultStage } from "./fault-stage.ts";

const GOOD = 30;
const SETUP_MS = 400_000;
/** Also 30 runs one by one on a machine ten times slower. */
const PATIENCE_MS = 300_000;

/** As if the kernel had ended it: a node that takes all the memory there is. */
const POISON_NODE = `import { defineNode } from "latchkey/node";
export const node = defineNode({
  type: "poison",
  schema: { type: "object", properties: {} },
  run: async () => process.kill(process.pid, "SIGKILL") && (await new Promise(() => {})),
});
`;
const POISON = blueprint(
  "poison",
  `- { id: given, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: given, format: json }
- { id: dies, type: poison, from: lines }
- { id: out, type: output, refKey: out, from: dies }`,
);

let stage: FaultStage;
let caller: Caller;
const folder = mkdtempSync(join(tmpdir(), "latchkey-poison-"));

before(
  async () => {
    const file = join(folder, "poison.js");
    writeFileSync(file, POISON_NODE);
    stage = await openFaultStage({ LATCHKEY_NODE_FILES: file }, null, { documents: [POISON] });
    caller = callerOf(stage, await stage.installation.serveProcess({}, ["api"]));
  },
  { timeout: SETUP_MS },
);
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** One that takes all runs at once. Undefined: it died before it was up. */
const serveWorker = async (): Promise<ServiceProcess | undefined> =>
  await stage.installation
    .serveProcess({ LATCHKEY_WORKER_CONCURRENCY: String(GOOD + 10) }, ["worker"])
    .catch(() => undefined);

async function triggerPoison(): Promise<string> {
  const { status, text, body } = await caller.post("/blueprints/poison/trigger", { rows: [] });
  assert.equal(status, 202, text);
  return body.id;
}

interface Fate {
  readonly id: string;
  readonly status: string;
  readonly kind: string | null;
  readonly lost: number;
  readonly owner: string | null;
}

const fates = async (runs: readonly string[]): Promise<readonly Fate[]> =>
  await stage.installation.database.db.query<Fate>(
    `select id, status, error_kind as kind, lost_leases as lost, lease_owner as owner from run where id = any($1)`,
    [runs],
  );
const areOver = async (runs: readonly string[]): Promise<boolean> =>
  (await fates(runs)).every(({ status }) => status === "completed" || status === "failed");

/** The worker that is left of the first test: the next one uses it. */
let standing: ServiceProcess | undefined;

/** Workers one after the other, as a supervisor starts them, until the runs are over; gives how many of them died. */
async function superviseUntilOver(runs: readonly string[], deathsMax: number): Promise<number> {
  for (let deaths = 0; deaths <= deathsMax; deaths++) {
    const worker = await serveWorker();
    if (worker) {
      const isOver = async (): Promise<true | undefined> =>
        isDead(worker.child) || (await areOver(runs)) ? true : undefined;
      await eventually("the worker is dead or has nothing left to do", isOver, PATIENCE_MS);
      if (!isDead(worker.child)) {
        standing = worker;
        return deaths;
      }
    }
  }
  throw new Error(`more than ${deathsMax} workers died`);
}

test(
  `a run that kills its worker is given up after three of them; ${GOOD} runs beside it complete, each record written once`,
  { timeout: SETUP_MS },
  async () => {
    const release = stage.holdReads();
    const good = await Promise.all(
      Array.from({ length: GOOD }, async () => await stage.trigger(caller, "sends")),
    );
    const poison = await triggerPoison();
    for (const losses of [1, 2]) {
      const worker = await serveWorker();
      if (worker) await untilDead(worker);
      const [dead] = await fates([poison]);
      assert.equal(dead?.lost, losses - 1, "nobody has found out yet");
    }
    release();
    assert.equal(
      await superviseUntilOver([...good, poison], 3),
      0,
      "the next one lives: its quarantine dies of it",
    );

    const [given] = await fates([poison]);
    assert.deepEqual(
      { status: given?.status, kind: given?.kind, lost: given?.lost },
      { status: "failed", kind: "interrupted", lost: 3 },
    );
    const ends = (await fates(good)).map(({ status, kind, lost }) => `${kind ?? status}, ${lost} lost`);
    assert.deepEqual(new Set(ends), new Set(["completed, 0 lost"]), ends.join("; "));
    await stage.check(caller, good);
    await afterFaults(stage);
  },
);

/** In times of what a run takes beside no suspect. */
const SLOWER_MAX = 1.2;
const MEASURED = 300;
const EVERY_MS = 50;

/** Runs one after the other at a fixed rate; gives the 95th percentile of their time from trigger to end. */
async function p95Ms(): Promise<number> {
  const runs: Promise<string>[] = [];
  for (let n = 0; n < MEASURED; n++) {
    runs.push(stage.trigger(caller, "plain"));
    await sleep(EVERY_MS);
  }
  const rows = await stage.ended(await Promise.all(runs));
  const times = rows.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
  return times[Math.floor(times.length * 0.95)] ?? Infinity;
}

testInAll(
  "which worker carries what, above",
  `beside a suspect that takes its time, others' runs take at most ${SLOWER_MAX} times as long`,
  { timeout: SETUP_MS },
  async (context) => {
    await plantSuspects();
    await standing?.end("SIGKILL");
    standing = undefined;
    const release = stage.holdReads();
    const worker = await serveWorker();
    assert.ok(worker);
    await p95Ms();
    const ratios: number[] = [];
    const pairs: { readonly alone: number; readonly beside: number }[] = [];
    for (let pair = 0; pair < 3; pair++) {
      const alone = await p95Ms();
      const suspect = await triggerSuspect("sends");
      // The start of its process costs a second of a core, once; others' runs are measured beside the suspect itself.
      await eventually("it is carried", areReading([suspect]), PATIENCE_MS);
      const beside = await p95Ms();
      assert.equal((await caller.post(`/blueprint-runs/${suspect}/cancel`, {})).status, 200);
      pairs.push({ alone, beside });
      ratios.push(beside / alone);
    }
    context.diagnostic(JSON.stringify(pairs));
    release();
    const [, median = Infinity] = ratios.toSorted((a, b) => a - b);
    assert.ok(median <= SLOWER_MAX, JSON.stringify(pairs));
    await worker.end("SIGKILL");
    await afterFaults(stage);
  },
);

/** Runs whose name begins so are planted as two workers that died of them have left them. */
async function plantSuspects(): Promise<void> {
  await stage.installation.database.db.query(
    `create or replace function lose_two() returns trigger language plpgsql as $$
     begin new.admitted_at := app_now(); new.lost_leases := 2; return new; end $$;
     create or replace trigger lose_two before insert on run for each row
       when (new.name like 'suspect%') execute function lose_two()`,
  );
}

async function triggerSuspect(way: "poison" | "sends" | "plain"): Promise<string> {
  const { status, text, body } = await caller.post(`/blueprints/${way}/trigger`, {
    rows: [],
    run_name: "suspect",
  });
  assert.equal(status, 202, text);
  return body.id;
}

const areReading = (runs: readonly string[]) => async (): Promise<true | undefined> =>
  runs.every((id) => stage.reads(id).length > 0) ? true : undefined;

test(
  "a run that kills its worker costs those beside it nothing once it is suspected",
  { timeout: SETUP_MS },
  async () => {
    await plantSuspects();
    const release = stage.holdReads();
    const company = await Promise.all([stage.trigger(caller, "sends"), stage.trigger(caller, "sends")]);
    const worker = standing ?? (await serveWorker());
    standing = undefined;
    assert.ok(worker);
    await eventually("both are reading", areReading(company), PATIENCE_MS);
    const before = await fates(company);
    const poison = await triggerSuspect("poison");
    const isOver = async (): Promise<true | undefined> => ((await areOver([poison])) ? true : undefined);
    await eventually("it is over", isOver, PATIENCE_MS);
    const [given] = await fates([poison]);
    assert.deepEqual([given?.kind, given?.lost], ["interrupted", 3]);
    assert.equal(isDead(worker.child), false);
    assert.deepEqual(await fates(company), before, "they are with the same worker");
    assert.deepEqual(
      company.map((id) => stage.reads(id).length),
      [1, 1],
      "and have asked once",
    );
    release();
    await stage.ended(company);
    await stage.check(caller, company);
    await worker.end("SIGKILL");
    await afterFaults(stage);
  },
);

test(
  "beside a suspect that takes its time all others are carried; it is handed back when the worker's process is killed, and not held guilty",
  { timeout: SETUP_MS },
  async () => {
    await plantSuspects();
    const release = stage.holdReads();
    const worker = await stage.installation.serveProcess({ LATCHKEY_WORKER_CONCURRENCY: "1" }, ["worker"]);
    const suspect = await triggerSuspect("sends");
    await eventually("it is reading", areReading([suspect]), PATIENCE_MS);
    const [held] = await fates([suspect]);
    assert.ok(held?.owner);
    const others: string[] = [];
    for (let n = 0; n < 5; n++) others.push(await stage.trigger(caller, "plain"));
    await stage.ended(others, PATIENCE_MS);
    assert.equal(
      (await fates([suspect]))[0]?.owner,
      held.owner,
      "it has gone on meanwhile, in no place of the worker",
    );

    await worker.end("SIGKILL");
    const isBack = async (): Promise<Fate | undefined> =>
      (await fates([suspect])).find(({ owner }) => owner === null);
    assert.equal((await eventually("it is handed back", isBack, PATIENCE_MS)).lost, 2);
    release();
    const next = await serveWorker();
    const [ended] = await stage.ended([suspect], PATIENCE_MS);
    assert.equal(ended?.status, "completed");
    await stage.check(caller, [suspect]);
    assert.equal(await next?.end("SIGTERM"), 0, "a drain waits for nobody");
    await afterFaults(stage);
  },
);
