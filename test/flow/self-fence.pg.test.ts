// A worker that stands still between a write's intent and its first byte, for longer than others wait for its heartbeat, does not send
// the write when it goes on: another worker has sent it by then. The target's books decide. Liveness times are a tenth of the product's,
// but for the freezes at the end.
//
// LATCHKEY_FREEZES=200 npm run test:all -- self-fence     the full number
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { eventually } from "../eventually.ts";
import type { Caller } from "../caller.ts";
import type { ServiceProcess } from "../service.ts";
import { inTier, testInAll } from "../tiers.ts";
import { afterFaults, callerOf, openFaultStage, RECORDS, type FaultStage } from "./fault-stage.ts";

const FAST = {
  NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, "fast-liveness.mjs")).href}`,
};
/** Between the fence (1 s) and the age at which others take over (1.5 s). */
const SHORT_FREEZE_MS = 1_200;
const STALE_MS = 1_500;
/** The read is the first hop, the first look-up and the first connection; the write has its own. */
const POINTS = [
  "write.after_intent=freeze:1",
  "gate.before_hop=freeze:2",
  "gate.before_dial=freeze:2",
  "gate.after_lookup=freeze:2",
  "gate.after_dial=freeze:2",
] as const;
const ROUNDS = Math.ceil(Number(process.env["LATCHKEY_FREEZES"] ?? 40) / POINTS.length);
/** With the product's own times: shorter than the fence, between it and what others wait for, and longer than both. */
const FREEZES_MS = [5_000, 8_000, 9_500, 10_500, 12_000, 14_000, 16_000, 20_000, 25_000, 30_000];

let stage: FaultStage;
let caller: Caller;

before(
  async () => {
    stage = await openFaultStage({ LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8,::1/128" }, null, {
      host: "localhost",
    });
    caller = callerOf(stage, await stage.installation.serve({}, ["api"]));
  },
  { timeout: 120_000 },
);
after(async () => await stage?.[Symbol.asyncDispose]());

const serveWorker = async (failpoints = "", liveness = FAST): Promise<ServiceProcess> =>
  await stage.installation.serveProcess({ ...liveness, LATCHKEY_FAILPOINTS: failpoints }, ["worker"]);

const isFrozen = (pid: number | undefined): boolean =>
  / T /.test(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/, ""));

/** Triggers a run that the worker freezes in. */
async function triggerFrozen(worker: ServiceProcess): Promise<string> {
  // Every request has a connection of its own: the second point of a kind is that of a write.
  const items = Array.from({ length: RECORDS }, (_, index) => ({ number: `n${index}` }));
  stage.target.on("GET /items", { json: { items }, headers: { connection: "close" } });
  const run = await stage.trigger(caller, "sends");
  await eventually("the worker stands still", async () => isFrozen(worker.child.pid) || undefined);
  assert.equal(stage.orders(run).length, 0, "nothing was sent yet");
  return run;
}

const CASES = Array.from({ length: ROUNDS }, (_, round) =>
  POINTS.map((point) => [point, round] as const),
).flat();

/** The longest way that there is between the two, and the last moment. */
const isRepresentative = ([point, round]: (typeof CASES)[number]): boolean =>
  round === 0 && /^(write\.after_intent|gate\.after_dial)/.test(point);

for (const [point, round] of inTier(CASES, isRepresentative)) {
  test(`frozen at ${point.split("=")[0]} while another worker sends the writes: none is sent twice (${round + 1})`, async () => {
    const zombie = await serveWorker(point);
    const run = await triggerFrozen(zombie);
    const other = await serveWorker();
    const [row] = await stage.ended([run]);
    assert.equal(row?.status, "completed");
    const pid = zombie.child.pid;
    zombie.child.kill("SIGCONT");
    await eventually(
      "it has joined again",
      async () =>
        (await stage.installation.database.db.query("select 1 from worker where pid = $1", [pid])).length ===
          1 || undefined,
    );
    assert.equal(stage.orders(run).length, RECORDS);
    await stage.check(caller, [run]);
    for (const each of [zombie, other]) await each.end("SIGKILL");
  });
}

test("a freeze that nobody has noticed yet: the write is ruled out, the run goes on by itself, and each is sent once", async () => {
  const worker = await serveWorker("gate.after_dial=freeze:2");
  const run = await triggerFrozen(worker);
  await sleep(SHORT_FREEZE_MS);
  worker.child.kill("SIGCONT");
  const [row] = await stage.ended([run]);
  assert.equal(row?.status, "completed");
  await stage.check(caller, [run]);
  const writes = await stage.installation.database.db.query<{ status: string; epoch: number }>(
    "select status, epoch from run_write where run_id = $1 order by ordinal",
    [run],
  );
  assert.deepEqual(
    writes.map(({ status }) => status),
    Array.from({ length: RECORDS }, () => "done"),
  );
  const [carried] = await stage.installation.database.db.query<{ epoch: number }>(
    "select lease_epoch as epoch from run where id = $1",
    [run],
  );
  assert.ok((carried?.epoch ?? 0) > 1, "the fence has stopped it");
  await worker.end("SIGKILL");
});

test("a run that takes longer than a heartbeat may be old stays with its worker, which renews it", async () => {
  const release = stage.holdReads();
  const worker = await serveWorker();
  const run = await stage.trigger(caller, "sends");
  await eventually("it is reading", async () => stage.reads(run).length === 1 || undefined);
  const other = await serveWorker();
  await sleep(STALE_MS * 2);
  release();
  const [row] = await stage.ended([run]);
  assert.equal(row?.status, "completed");
  const [carried] = await stage.installation.database.db.query<{ epoch: number }>(
    "select lease_epoch as epoch from run where id = $1",
    [run],
  );
  assert.equal(carried?.epoch, 1, "nobody has taken it over");
  for (const each of [worker, other]) await each.end("SIGKILL");
  await afterFaults(stage);
});

for (const [index, freezeMs] of FREEZES_MS.entries()) {
  const point = POINTS[index % POINTS.length] ?? POINTS[0];
  testInAll(
    "the same with times a tenth as long",
    `frozen for ${freezeMs / 1_000} s at ${point.split("=")[0]} beside another worker: none is sent twice`,
    { timeout: 200_000 },
    async (t) => {
      const zombie = await serveWorker(point, { NODE_OPTIONS: "" });
      t.after(async () => await zombie.end("SIGKILL"));
      const run = await triggerFrozen(zombie);
      const other = await serveWorker("", { NODE_OPTIONS: "" });
      t.after(async () => await other.end("SIGKILL"));
      await sleep(freezeMs);
      zombie.child.kill("SIGCONT");
      const [row] = await stage.ended([run]);
      assert.equal(row?.status, "completed");
      assert.equal(stage.orders(run).length, RECORDS);
      await stage.check(caller, [run]);
      for (const each of [zombie, other]) await each.end("SIGKILL");
      await afterFaults(stage);
    },
  );
}
