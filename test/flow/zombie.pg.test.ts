// docs/decisions/0005: a worker that dies is followed at once, one that only stands still within 20 s;
// and what stood still changes nothing any more when it wakes up.
//
// LATCHKEY_FREEZE_SECONDS=60 npm test -- zombie     frozen for a minute; else only until the others have ended its runs
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../eventually.ts";
import type { Caller } from "../caller.ts";
import type { ServiceProcess } from "../service.ts";
import { afterFaults, type FaultStage, openServedStage, SETUP_MS, type Way } from "./fault-stage.ts";

const FREEZE_MS = Number(process.env["LATCHKEY_FREEZE_SECONDS"] ?? 0) * 1_000;
const JOBS = 20;

let stage: FaultStage;
let caller: Caller;

before(
  async () => {
    ({ stage, caller } = await openServedStage());
  },
  { timeout: SETUP_MS },
);
after(async () => await stage?.[Symbol.asyncDispose]());

const serveWorker = async (): Promise<ServiceProcess> =>
  await stage.installation.serveProcess({}, ["worker"]);

const trigger = async (count: number, way: Way): Promise<readonly string[]> =>
  await Promise.all(Array.from({ length: count }, async () => await stage.trigger(caller, way)));

test(
  `${JOBS} jobs of a worker killed with -9 go on elsewhere at once`,
  { timeout: 300_000 },
  async (context) => {
    const dying = await serveWorker();
    const release = stage.holdReads();
    // Without a login: those of one credential are one at a time.
    const runs = await trigger(JOBS, "sends");
    await until("all are reading", () => runs.every((run) => stage.reads(run).length === 1));
    const other = await serveWorker();
    dying.child.kill("SIGKILL");
    // Nobody waits for its heartbeat to grow old: that its lock is free is enough.
    await stage.installation.database.db.query(
      `update worker set heartbeat_at = app_now() + interval '1 day' where pid = $1`,
      [dying.child.pid],
    );
    const killedAt = performance.now();
    await until("all are read again", () => runs.every((run) => stage.reads(run).length === 2));
    context.diagnostic(`${JOBS} jobs went on after ${Math.round(performance.now() - killedAt)} ms`);
    release();
    const rows = await stage.outlived(caller, runs);
    assert.ok(rows.every(({ status }) => status === "completed"));
    await stage.check(caller, runs);
    await other.end("SIGKILL");
  },
);

/** Everything that a worker could change: rows, the target's requests, the store's objects (what is half written is none). */
async function everything(): Promise<readonly string[]> {
  const { db } = stage.installation.database;
  const tables = ["run", "run_step", "run_write", "run_result", "blob", "review", "run_history"];
  const rows = await Promise.all(
    tables.map(
      async (table) =>
        await db.query<{ row: string }>(`select '${table} ' || t::text as row from ${table} t order by 1`),
    ),
  );
  // Its other columns are filled in when the chain is closed.
  const audit = await db.query<{ row: string }>(
    `select 'audit ' || id || action as row from audit_entry where run_id is not null`,
  );
  const objects = join(stage.installation.dataFolder, "objects");
  const files = existsSync(objects) ? readdirSync(objects, { recursive: true, withFileTypes: true }) : [];
  return [
    ...[...rows.flat(), ...audit].map(({ row }) => row),
    ...stage.target.all.map(({ method, path }) => `${method} ${path}`),
    ...files
      .filter((file) => file.isFile() && !file.name.endsWith(".part"))
      .map((file) => join(file.parentPath, file.name)),
  ].toSorted((a, b) => (a < b ? -1 : 1));
}

test(
  "a worker that stood still wakes up, changes nothing, stops its runs, and works on",
  { timeout: 400_000 },
  async (context) => {
    const { db } = stage.installation.database;
    const zombie = await serveWorker();
    const [releaseReads, releaseOrders] = [stage.holdReads(), stage.holdOrders()];
    const reading = await trigger(4, "reads");
    const runs = [...reading];
    await until("four are reading", () => reading.every((run) => stage.reads(run).length === 1));
    releaseReads();
    // And four that stand in the middle of a write: sent, in the books, and not answered.
    stage.holdReads()();
    const writing = await trigger(4, "sends");
    runs.push(...writing);
    await until("four are writing", () => writing.every((run) => stage.orders(run).length === 1));
    const held = stage.holdReads();
    const stillReading = await trigger(4, "reads");
    runs.push(...stillReading);
    await until("four stay reading", () => stillReading.every((run) => stage.reads(run).length === 1));

    zombie.child.kill("SIGSTOP");
    const frozenAt = performance.now();
    const other = await serveWorker();
    const left = [...writing, ...stillReading];
    await until("another worker holds its runs", async () => {
      const rows = await db.query(`select 1 from run where id = any($1) and lease_epoch > 1`, [left]);
      return rows.length === left.length;
    });
    const tookMs = Math.round(performance.now() - frozenAt);
    context.diagnostic(`taken over ${tookMs} ms after the freeze`);
    // The answers come now, to the one that sleeps as well: they wait in its sockets.
    held();
    releaseOrders();
    const rows = await stage.outlived(caller, runs);
    assert.deepEqual([...new Set(rows.map(({ status }) => status))], ["completed"]);
    await sleep(Math.max(0, FREEZE_MS - (performance.now() - frozenAt)));
    await stage.check(caller, runs);

    const before = await everything();
    const was = new Set(before);
    zombie.child.kill("SIGCONT");
    // It joins again only when it carries nothing any more.
    await until("it has joined again", async () => {
      const joined = await db.query(`select 1 from worker where pid = $1`, [zombie.child.pid]);
      return joined.length === 1;
    });
    const now = await everything();
    assert.deepEqual(
      [now.filter((each) => !was.has(each)), [...was].filter((each) => !now.includes(each))],
      [[], []],
    );
    assert.equal(now.length, before.length);
    await other.end("SIGKILL");
    const more = await trigger(3, "sends");
    await stage.ended(more);
    await stage.check(caller, [...runs, ...more]);
    await afterFaults(stage);
    assert.equal(zombie.child.exitCode, null);
  },
);
