// docs/operate.md#when-a-worker-is-considered-dead: "Clock changes, even of the database, affect neither." The clock of one of two machines
// jumps a day ahead and two days back, by libfaketime, under load: no request fails, no lease is lost, and every run ends once.
import assert from "node:assert/strict";
import { globSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "#lib/assert.ts";
import { unpackDebian, whyNoDebian } from "../debian-packages.ts";
import { eventually } from "../eventually.ts";
import { startProcess } from "../service-process.ts";
import { startLoad } from "./client-load.ts";
import { afterFaults, callerOf, openFaultStage } from "./fault-stage.ts";

const skip = whyNoDebian() ?? false;
const JUMPS = ["+1d", "-1d", "+0d"];
const BETWEEN_MS = 3_000;
const PATIENCE_MS = 120_000;
const RUNS = 5;

/** A clock that is what a file says, for programs with these variables; what measures durations is not touched, as on real machines. */
async function openClock(folder: string) {
  const root = await unpackDebian({
    name: "libfaketime",
    what: "libfaketime",
    from: [{ suite: "own", packages: ["libfaketime"], withDependencies: false }],
    instead: "The simulator moves clocks, too: npm run simulate.",
  });
  const file = join(folder, "clock");
  const jump = (offset: string): void => writeFileSync(file, `${offset}\n`);
  jump("+0d");
  const environment = {
    LD_PRELOAD: must(globSync(join(root, "usr/lib/*/faketime/libfaketimeMT.so.1"))[0], "the library"),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    DONT_FAKE_MONOTONIC: "1",
  };
  return { environment, jump };
}

test(
  "a machine's clock jumps under load: no request fails, no lease is lost, and every run ends once",
  { skip, timeout: 400_000 },
  async (context) => {
    await using stage = await openFaultStage();
    const { installation } = stage;
    const clock = await openClock(installation.dataFolder);
    let log = "";
    const jumping = await startProcess(
      { ...installation.environment, ...clock.environment },
      ["api", "worker"],
      (text) => (log += text),
    );
    const steady = await installation.serveProcess({}, ["worker"]);
    try {
      const caller = callerOf(stage, jumping);
      const release = stage.holdReads();
      const reading = await Promise.all(
        Array.from({ length: RUNS }, async () => await stage.trigger(caller, "sends")),
      );
      const areReading = async (): Promise<true | undefined> =>
        reading.every((run) => stage.reads(run).length > 0) || undefined;
      await eventually("all read", areReading, PATIENCE_MS);
      await using load = startLoad(caller, "/blueprints/plain/trigger", { rows: [] }, 2, "jumps");
      for (const offset of JUMPS) {
        clock.jump(offset);
        await sleep(BETWEEN_MS);
      }
      release();
      await load.stop();
      const runs = [...reading, ...load.accepted];
      const rows = await stage.outlived(caller, runs);
      context.diagnostic(JSON.stringify({ accepted: load.accepted.length, refusals: [...load.refusals] }));
      // The log's lines have the process's own time.
      const days = new Set([...log.matchAll(/"time":"(\d{4}-\d\d-\d\d)T/g)].map(([, day]) => day));
      assert.ok(days.size >= 3, `the clock has jumped: ${[...days].join(", ")}`);
      assert.deepEqual([...load.refusals], []);
      assert.ok(rows.every(({ status }) => status === "completed"));
      const lost = await installation.database.db.query("select id from run where lost_leases > 0");
      assert.deepEqual(lost, []);
      await stage.check(caller, runs);
      await afterFaults(stage);
    } finally {
      await Promise.all([jumping.end("SIGKILL"), steady.end("SIGKILL")]);
    }
  },
);
