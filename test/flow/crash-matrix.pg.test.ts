// Design, page 6, G3, G4 and F3: workers die again and again, at fail-points and at any moment, while runs write. No acknowledged
// run is lost, each has one end, and no record is twice in the target's books.
//
// LATCHKEY_CRASH_KILLS=400 npm test -- crash-matrix     the full one: 2,000 writes at least. 100 took 13 minutes on a busy machine
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Caller } from "../caller.ts";
import { afterFaults, callerOf, isDead, openFaultStage, RECORDS, type FaultStage } from "./fault-stage.ts";
import { runPointsOf } from "./run-failpoints.ts";

const KILLS = Number(process.env["LATCHKEY_CRASH_KILLS"] ?? 9);
const WRITES = KILLS * 5;
const WORKERS = 3;
/** Runs that are not ended at any time. */
const IN_FLIGHT = 8;
/** A point acts at its first hit to this one. */
const HIT_MAX = 5;
/** A worker that does not come to its point is killed when all of them have written so many records: also slow ones get on. */
const RECORDS_MIN = 10;
const RECORDS_MAX = 25;
const LIFE_MS_MAX = 20_000;
const TIMEOUT_MS = 120_000 + KILLS * 20_000;

/** A machine that does ten other things starts four processes slowly. */
const SETUP_MS = 400_000;

let stage: FaultStage;
let caller: Caller;

before(
  async () => {
    stage = await openFaultStage();
    const api = await stage.installation.serve({}, "--roles", "api");
    caller = callerOf(stage, api);
    await stage.credential(caller);
    // One that ends by itself leaves what it has compiled to all that follow.
    await (await stage.installation.serve({}, "--roles", "worker")).end("SIGTERM");
  },
  { timeout: SETUP_MS },
);
after(async () => await stage?.[Symbol.asyncDispose]());

/** One worker after the other, each killed; gives how many came to the point at which they kill themselves. */
async function dieAgainAndAgain(mayGoOn: () => boolean): Promise<number> {
  const points = runPointsOf("whole", "take_over");
  let atPoints = 0;
  while (mayGoOn()) {
    const point = points[randomInt(points.length)] ?? "run.after_claim";
    const failpoints = { LATCHKEY_FAILPOINTS: `${point}=kill:${randomInt(1, HIT_MAX + 1)}` };
    // It may come to its point before it is up.
    const worker = await stage.installation.serve(failpoints, "--roles", "worker").catch(() => null);
    if (worker === null) {
      atPoints += 1;
      continue;
    }
    const until = stage.written() + randomInt(RECORDS_MIN, RECORDS_MAX);
    const deadline = performance.now() + LIFE_MS_MAX;
    while (!isDead(worker.child) && stage.written() < until && performance.now() < deadline) await sleep(5);
    if (isDead(worker.child)) atPoints += 1;
    await worker.end("SIGKILL");
  }
  return atPoints;
}

/** Triggers runs as long as there is need of them, never too many at a time; gives all of them. */
async function triggerUntil(isEnough: (triggered: number) => boolean): Promise<readonly string[]> {
  const ids: string[] = [];
  while (!isEnough(ids.length)) {
    const [open] = await stage.installation.database.db.query<{ count: number }>(
      `select count(*)::int as count from run where ended_at is null`,
    );
    const wanted = Math.max(0, IN_FLIGHT - (open?.count ?? 0));
    const ways = Array.from(
      { length: wanted },
      () => (randomInt(4) === 0 ? "whole" : "sends") as "whole" | "sends",
    );
    ids.push(...(await Promise.all(ways.map(async (way) => await stage.trigger(caller, way)))));
    await sleep(20);
  }
  return ids;
}

test(
  `${KILLS} workers killed while runs write at least ${WRITES} records: none lost, none twice`,
  { timeout: TIMEOUT_MS },
  async (context) => {
    const begun = performance.now();
    let kills = 0;
    const mayGoOn = (): boolean => kills++ < KILLS;
    const dying = Promise.all(Array.from({ length: WORKERS }, async () => await dieAgainAndAgain(mayGoOn)));
    let isOver = false;
    const deaths = dying.finally(() => (isOver = true));
    const runs = await triggerUntil((triggered) => isOver && triggered * RECORDS >= WRITES);
    const atPoints = (await deaths).reduce((sum, count) => sum + count, 0);
    const last = await stage.installation.serve({}, "--roles", "worker");
    const rows = await stage.ended(runs, TIMEOUT_MS);
    await stage.check(caller, runs);
    await afterFaults(stage);
    await last.end("SIGKILL");

    const orders = runs.flatMap((run) => stage.orders(run));
    const [story] = await stage.installation.database.db.query(
      `select (select count(*)::int from run) as runs, (select sum(lease_epoch)::int from run) as epochs,
       (select count(*)::int from run_write where attempts > 1) as "begunAgain"`,
    );
    const ends = Object.fromEntries(
      [...Map.groupBy(rows, ({ status, kind }) => kind ?? status)].map(([end, all]) => [end, all.length]),
    );
    context.diagnostic(
      JSON.stringify({
        kills: KILLS,
        atPoints,
        ...story,
        writes: orders.length,
        ends,
        seconds: Math.round((performance.now() - begun) / 1_000),
      }),
    );
    assert.equal(story?.["runs"], runs.length, "every run is one that was acknowledged");
    assert.ok(orders.length >= WRITES - (ends["interrupted"] ?? 0) * RECORDS, `${orders.length} writes`);
    // A run that loses its worker three times without getting further ends as poison; nothing else may fail.
    assert.deepEqual(
      Object.keys(ends).filter((end) => end !== "completed" && end !== "interrupted"),
      [],
    );
    assert.ok((ends["completed"] ?? 0) > 0);
    assert.ok(Number(story?.["epochs"]) > runs.length, "runs were taken over");
  },
);
