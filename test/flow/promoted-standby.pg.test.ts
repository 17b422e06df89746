// docs/decisions/0026: the primary dies, and a synchronous standby is promoted in its place, under two workers. No run loses its lease,
// nothing is read twice, and nothing that was acknowledged is lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startLoad } from "./client-load.ts";
import { afterFaults, callerOf, openFaultStage } from "./fault-stage.ts";
import { startReplicatedDatabase } from "./replicated-database.ts";
import { eventually } from "../eventually.ts";

const RUNS = 10;
const CLIENTS = 4;
const PATIENCE_MS = 120_000;
/** From the promotion on, for the pools to find out and the workers to take their locks again. */
const BACK_MS_MAX = 5_000;

test(
  "a standby is promoted: no lease is lost, nothing is read twice, and all that was accepted ends",
  { timeout: 400_000 },
  async (context) => {
    await using replicated = await startReplicatedDatabase();
    await using stage = await openFaultStage({}, replicated.database);
    const services = await Promise.all([
      stage.installation.serveProcess({}),
      stage.installation.serveProcess({}, ["worker"]),
    ]);
    const caller = callerOf(stage, services[0]);
    const release = stage.holdReads();
    // Without a login: those of one credential are one at a time.
    const reading = await Promise.all(
      Array.from({ length: RUNS }, async () => await stage.trigger(caller, "sends")),
    );
    await eventually(
      "all read",
      async () => reading.every((run) => stage.reads(run).length === 1) || undefined,
      PATIENCE_MS,
    );
    await using load = startLoad(caller, "/blueprints/plain/trigger", { rows: [] }, CLIENTS, "promoted");
    await eventually(
      "runs are accepted",
      async () => load.accepted.length > CLIENTS || undefined,
      PATIENCE_MS,
    );
    await replicated.failOver();
    const promotedAt = performance.now();
    await eventually("it serves again", async () => load.servedAt > promotedAt || undefined, PATIENCE_MS);
    const backMs = Math.round(load.servedAt - promotedAt);
    release();
    await load.stop();
    const rows = await stage.outlived(caller, [...reading, ...load.accepted]);
    context.diagnostic(
      JSON.stringify({ accepted: load.accepted.length, backMs, refusals: [...load.refusals] }),
    );
    assert.ok(backMs < BACK_MS_MAX, `it served again ${backMs} ms after the promotion`);
    assert.ok(rows.every(({ status }) => status === "completed"));
    assert.deepEqual(
      reading.map((run) => stage.reads(run).length),
      reading.map(() => 1),
    );
    // A claim whose answer was lost with the primary is made once more; that costs its run nothing.
    const lost = await replicated.database.db.query(
      "select id, lost_leases, lease_epoch from run where lost_leases > 0 or (lease_epoch > 1 and id = any($1))",
      [reading],
    );
    assert.deepEqual(lost, []);
    assert.deepEqual(
      services.map(({ child }) => child.exitCode),
      [null, null],
    );
    await stage.check(caller, [...reading, ...load.accepted]);
    await afterFaults(stage);
    await Promise.all(services.map(async (service) => await service.end("SIGKILL")));
  },
);
