// docs/decisions/0007: a worker dies, or loses its connection, while one statement of several runs is under
// way. What became of it nobody heard: it is done or undone for all of them, and no run is lost, none does anything twice.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import type { Caller } from "../caller.ts";
import { inTier } from "../tiers.ts";
import { afterFaults, type FaultStage, openServedStage, RECORDS, SETUP_MS, type Way } from "./fault-stage.ts";

const RUNS = 6;
/** Statements of one kind that a process has under way at most. */
const BATCHES_MAX = 2;
/** Two lives, and a read that met a connection which was ending. */
const UNSAVED_READS_MAX = 4;
let stage: FaultStage;
let caller: Caller;

before(
  async () => {
    ({ stage, caller } = await openServedStage());
  },
  { timeout: SETUP_MS },
);
afterEach(async () => await afterFaults(stage));
after(async () => await stage?.[Symbol.asyncDispose]());

/** The sessions whose statement waits for the table. */
async function waitingFor(table: string): Promise<readonly number[]> {
  const rows = await stage.installation.database.db.query<{ pid: number }>(
    `select pid from pg_locks where relation = $1::regclass and not granted`,
    [table],
  );
  return rows.map(({ pid }) => pid);
}

/** How many of the runs have their read in the journal. */
async function checkpointed(runs: readonly string[]): Promise<number> {
  const rows = await stage.installation.database.db.query<{ count: number }>(
    `select count(distinct run_id)::int as count from run_step where run_id = any($1) and status = 'done'`,
    [runs],
  );
  return rows[0]?.count ?? 0;
}

const undo = async (pids: readonly number[]): Promise<unknown> =>
  await stage.installation.database.db.query(
    `select pg_terminate_backend(pid) from unnest($1::int[]) as pid`,
    [pids],
  );

/** The statement that stands still, by the table that it writes, and the runs that come to it together. */
const STATEMENTS: readonly { readonly what: string; readonly table: string; readonly way: Way }[] = [
  { what: "the checkpoint of several runs", table: "run_step", way: "sends" },
  { what: "the completion of several runs", table: "run_result", way: "reads" },
];
const FAULTS = {
  "it is done and its worker never hears of it": { isKilled: true, isUndone: false },
  "it is undone and its worker is dead": { isKilled: true, isUndone: true },
  "it is undone and its worker goes on": { isKilled: false, isUndone: true },
};

const CUTS = STATEMENTS.flatMap((statement) =>
  Object.entries(FAULTS).map(([how, fault]) => ({ ...statement, ...fault, how })),
);
/** Each statement once, and a worker that hears nothing as well as one that goes on. */
const isRepresentative = ({ table, isKilled, isUndone }: (typeof CUTS)[number]): boolean =>
  table === "run_step" ? isKilled && !isUndone : !isKilled;

for (const { what, table, way, how, isKilled, isUndone } of inTier(CUTS, isRepresentative)) {
  test(`${what} is cut off: ${how}`, { timeout: 2 * PATIENCE_MS }, async () => {
    const { db } = stage.installation.database;
    let worker = await stage.installation.serveProcess({}, ["worker"]);
    const release = stage.holdReads();
    const runs = await Promise.all(
      Array.from({ length: RUNS }, async () => await stage.trigger(caller, way)),
    );
    const areReading = async () => (runs.every((run) => stage.reads(run).length > 0) ? true : undefined);
    await eventually("all are reading", areReading, PATIENCE_MS);
    const haveRead = async () => (await checkpointed(runs)) === RUNS || undefined;
    await db.transaction(async (tx) => {
      await tx.query(`lock table ${table} in share mode`);
      release();
      if (table !== "run_step") await eventually("all have their read in the journal", haveRead, PATIENCE_MS);
      const standing = await eventually(
        "the statement stands still",
        async () => {
          const pids = await waitingFor(table);
          return pids.length > 0 ? pids : undefined;
        },
        PATIENCE_MS,
      );
      // Six runs, and not a statement for each.
      assert.ok(standing.length <= BATCHES_MAX, `${standing.length} statements`);
      if (isKilled) await worker.end("SIGKILL");
      if (isUndone) await undo(await waitingFor(table));
    });
    if (isKilled) worker = await stage.installation.serveProcess({}, ["worker"]);
    const rows = await stage.outlived(caller, runs);
    assert.deepEqual(new Set(rows.map(({ status }) => status)), new Set(["completed"]));
    await stage.check(caller, runs);
    for (const run of runs) {
      // What is in the journal is never read again; what is not yet may be, by the next life or as a retry.
      const readsMax = table === "run_step" ? UNSAVED_READS_MAX : 1;
      assert.ok(stage.reads(run).length <= readsMax, `${run} has read ${stage.reads(run).length} times`);
      assert.equal(stage.orders(run).length, way === "sends" ? RECORDS : 0);
    }
    await worker.end("SIGKILL");
  });
}

/** Longer than a statement waits for a lock (5 s). */
const LOCKED_MS = 6_000;

test(
  "a lock that is held for longer than a statement waits fails no run",
  { timeout: 2 * PATIENCE_MS },
  async () => {
    const { db } = stage.installation.database;
    const worker = await stage.installation.serveProcess({}, ["worker"]);
    const release = stage.holdReads();
    const run = await stage.trigger(caller, "sends");
    await eventually(
      "it is reading",
      async () => (stage.reads(run).length > 0 ? true : undefined),
      PATIENCE_MS,
    );
    await db.transaction(async (tx) => {
      await tx.query("lock table run_write in share mode");
      release();
      const isWaiting = async () => ((await waitingFor("run_write")).length > 0 ? true : undefined);
      await eventually("its intent waits", isWaiting, PATIENCE_MS);
      await sleep(LOCKED_MS);
    });
    const [row] = await stage.ended([run], PATIENCE_MS);
    assert.equal(row?.status, "completed");
    await stage.check(caller, [run]);
    assert.equal(stage.orders(run).length, RECORDS);
    await worker.end("SIGKILL");
  },
);
