// Design, page 6, F14: "Poison run: only that run fails"; 6.1: "A run that loses its lease 3 times without finishing a step is poison".
// A process that dies takes the leases of all its runs: those beside a poison run must not be given up with it.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Caller } from "../caller.ts";
import { blueprint } from "../documents/bench.ts";
import type { ServiceProcess } from "../service.ts";
import { afterFaults, callerOf, isDead, openFaultStage, untilDead, type FaultStage } from "./fault-stage.ts";
import { eventually } from "./run-history.ts";

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
    stage = await openFaultStage({ LATCHKEY_NODE_FILES: file });
    await stage.installation.apply(POISON);
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

/** Workers one after the other, as a supervisor starts them, until the runs are over; gives how many of them died. */
async function superviseUntilOver(runs: readonly string[], deathsMax: number): Promise<number> {
  for (let deaths = 0; deaths <= deathsMax; deaths++) {
    const worker = await serveWorker();
    if (worker) {
      const isOver = async (): Promise<true | undefined> =>
        isDead(worker.child) || (await areOver(runs)) ? true : undefined;
      await eventually("the worker is dead or has nothing left to do", isOver, PATIENCE_MS);
      if (!isDead(worker.child)) {
        await worker.end("SIGKILL");
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
    assert.equal(await superviseUntilOver([...good, poison], 3), 1, "one more dies of it, alone with it");

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

test(
  "what is under way when a run must be alone is handed back first, and loses nothing by its end",
  { timeout: SETUP_MS },
  async () => {
    const { db } = stage.installation.database;
    // As two workers that died of it have left it.
    await db.query(
      `create function lose_two() returns trigger language plpgsql as $$
       begin new.admitted_at := app_now(); new.lost_leases := 2; return new; end $$;
       create trigger lose_two before insert on run for each row
         when (new.name = 'suspect') execute function lose_two()`,
    );
    const release = stage.holdReads();
    const company = await Promise.all([stage.trigger(caller, "sends"), stage.trigger(caller, "sends")]);
    const worker = await serveWorker();
    assert.ok(worker);
    const areReading = async (): Promise<true | undefined> =>
      company.every((id) => stage.reads(id).length > 0) ? true : undefined;
    await eventually("both are reading", areReading, PATIENCE_MS);

    const { status, text, body } = await caller.post("/blueprints/poison/trigger", {
      rows: [],
      run_name: "suspect",
    });
    assert.equal(status, 202, text);
    assert.equal(await untilDead(worker), "SIGKILL");
    assert.deepEqual(
      (await fates(company)).map(({ lost, owner }) => [lost, owner]),
      [
        [0, null],
        [0, null],
      ],
      "nobody held them when the worker died",
    );
    release();
    assert.equal(await superviseUntilOver([...company, body.id], 0), 0);
    const [given] = await fates([body.id]);
    assert.equal(given?.kind, "interrupted");
    await stage.check(caller, company);
    await afterFaults(stage);
  },
);
