// docs/decisions/0008: workers die again and again, at fail-points and at any moment, while runs write. No acknowledged
// run is lost, each has one end, and no record is twice in the target's books.
//
// A run that loses its worker three times without getting further is poison and fails, and the third loss counts only when no other
// run was there. Who kills a worker from outside while a suspect is alone in it can't be told from the suspect: for that one loss,
// at most one a kill, this test pardons it. That it was alone is looked at with each, and what counts as getting further too;
// every run must complete.
//
// LATCHKEY_CRASH_KILLS=400 npm test -- crash-matrix     the full one: 2,000 writes at least
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { limits } from "#domain/limits.ts";
import { isDead } from "../processes.ts";
import type { Caller } from "../caller.ts";
import { afterFaults, type FaultStage, openServedStage, RECORDS, SETUP_MS } from "./fault-stage.ts";
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
const ENDED_MS = 120_000 + KILLS * 20_000;
/** Lives, and then the ends: where a run does not end, the test says where it stands. */
const TIMEOUT_MS = ENDED_MS + KILLS * LIFE_MS_MAX + 60_000;

let stage: FaultStage;
let caller: Caller;

before(
  async () => {
    ({ stage, caller } = await openServedStage());
    await pardonLosses();
    // One that ends by itself leaves what it has compiled to all that follow.
    await (await stage.installation.serveProcess({}, ["worker"])).end("SIGTERM");
  },
  { timeout: SETUP_MS },
);
after(async () => await stage?.[Symbol.asyncDispose]());

/** Notes each lost lease, whose it was, whether it counted though a write was done under it, and whether it would have ended the run. */
async function pardonLosses(): Promise<void> {
  await stage.installation.database.db.query(
    `create table loss (run_id text, owner text, lost integer, had_written boolean, is_pardoned boolean);
     create function pardon_loss() returns trigger language plpgsql as $$
     begin
       insert into loss values (new.id, old.lease_owner, new.lost_leases,
         exists (select from run_write where run_id = new.id and status = 'done' and epoch = old.lease_epoch),
         new.lost_leases >= ${limits.lostLeasesMax});
       new.lost_leases := least(new.lost_leases, ${limits.lostLeasesMax - 1});
       return new;
     end $$;
     create trigger pardon_loss before update of lost_leases on run for each row
       when (new.lost_leases > old.lost_leases) execute function pardon_loss()`,
  );
}

/** One worker after the other, each killed; gives how many came to the point at which they kill themselves. */
async function dieAgainAndAgain(mayGoOn: () => boolean): Promise<number> {
  const points = runPointsOf("whole", "take_over");
  let atPoints = 0;
  while (mayGoOn()) {
    const point = points[randomInt(points.length)] ?? "run.after_claim";
    const failpoints = { LATCHKEY_FAILPOINTS: `${point}=kill:${randomInt(1, HIT_MAX + 1)}` };
    // It may come to its point before it is up.
    const worker = await stage.installation.serveProcess(failpoints, ["worker"]).catch(() => null);
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
    // What is not triggered yet has somebody to carry it.
    const last = deaths.then(async () => await stage.installation.serveProcess({}, ["worker"]));
    const runs = await triggerUntil((triggered) => isOver && triggered * RECORDS >= WRITES);
    const atPoints = (await deaths).reduce((sum, count) => sum + count, 0);
    const rows = await stage.outlived(caller, runs);
    await stage.check(caller, runs);
    await afterFaults(stage);
    await (await last).end("SIGKILL");

    const orders = runs.flatMap((run) => stage.orders(run));
    const [story] = await stage.installation.database.db.query(
      // The neighbour's run, by which others are seen to go on, is not one of them.
      `select (select count(*)::int from run where account_id = (select account_id from run where id = $1)) as runs,
       (select sum(lease_epoch)::int from run) as epochs,
       (select count(*)::int from run_write where attempts > 1) as "begunAgain",
       (select count(*)::int from loss) as losses, (select count(*)::int from loss where is_pardoned) as pardoned,
       (select count(*)::int from loss mine where is_pardoned and exists (
          select from loss other where other.owner = mine.owner and other.run_id <> mine.run_id)) as "pardonedInCompany",
       (select count(*)::int from loss where had_written and lost > 1) as "countedInSpiteOfWrites"`,
      [runs[0]],
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
    assert.ok(orders.length >= WRITES, `${orders.length} writes`);
    assert.deepEqual(ends, { completed: runs.length });
    assert.equal(story?.["countedInSpiteOfWrites"], 0, "a write that is done is progress");
    assert.equal(story?.["pardonedInCompany"], 0, "a run is given up only for a loss that was its own");
    assert.ok(Number(story?.["pardoned"]) <= KILLS, "a kill ends one run at most");
    assert.ok(Number(story?.["epochs"]) > runs.length, "runs were taken over");
  },
);
