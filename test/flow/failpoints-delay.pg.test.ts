// docs/decisions/0025: every point of a run x delay 20 s. All points at once in one process, and one run for each: the one that comes
// first to a point waits there, the others go by.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../eventually.ts";
import type { Caller } from "../caller.ts";
import { afterFaults, type FaultStage, openServedStage, SETUP_MS } from "./fault-stage.ts";
import { actedPoints, runPointsOf, type Scenario } from "./run-failpoints.ts";

const DELAY_MS = 20_000;
const PATIENCE_MS = 240_000;

let stage: FaultStage;
let caller: Caller;

before(
  async () => {
    ({ stage, caller } = await openServedStage({ LATCHKEY_WORKER_CONCURRENCY: "60" }));
  },
  { timeout: SETUP_MS },
);
after(async () => await stage?.[Symbol.asyncDispose]());

test(
  "20 s at every point of a run: nothing is lost, nothing is written twice, and who does not wait there goes by",
  { timeout: 600_000 },
  async () => {
    const serveWorker = async (...scenarios: readonly Scenario[]) => {
      const points = runPointsOf(...scenarios);
      const armed = points.map((point) => `${point}=delay`).join(",");
      const worker = await stage.installation.serveProcess({ LATCHKEY_FAILPOINTS: armed }, ["worker"]);
      return { worker, points };
    };
    // Told to stop with two runs: it waits at handing them back until its own limit ends it, and holds them still.
    const leaving = await serveWorker("drain");
    const release = stage.holdReads();
    const held = await Promise.all([stage.trigger(caller, "reads"), stage.trigger(caller, "reads")]);
    await eventually(
      "both are reading",
      async () => (held.every((id) => stage.reads(id).length > 0) ? true : undefined),
      PATIENCE_MS,
    );
    const left = leaving.worker.end("SIGTERM");
    release();
    // It carries the others, and takes over from the first.
    const staying = await serveWorker("whole", "breaks", "take_over");
    const ids = await Promise.all([
      ...staying.points.map(async () => await stage.trigger(caller, "whole")),
      stage.trigger(caller, "breaks"),
      stage.trigger(caller, "breaks"),
    ]);
    assert.equal(await left, 0);
    const rows = await stage.ended([...held, ...ids], PATIENCE_MS);
    assert.deepEqual(
      rows.filter(({ status }) => status !== "completed").map(({ status, kind }) => [status, kind]),
      Array.from({ length: 2 }, () => ["failed", "target"]),
    );
    // Most points are a run's own, and one may have met two of them; the others are of the process.
    assert.ok(rows.filter(({ tookMs }) => tookMs >= DELAY_MS).length >= staying.points.length / 2);
    assert.deepEqual(
      actedPoints(stage.installation, "delay"),
      [...leaving.points, ...staying.points].toSorted((a, b) => a.localeCompare(b)),
    );
    await stage.check(caller, [...held, ...ids]);
    await afterFaults(stage);
    await staying.worker.end("SIGKILL");
  },
);
