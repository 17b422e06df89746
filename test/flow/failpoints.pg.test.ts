// docs/decisions/0025: every point with a kill and an error, not a random sample; from the
// claim to the terminal state, with two runs in flight, and the target's books decide.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FAILPOINTS, type Failpoint } from "#lib/failpoint.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { isDead, untilDead } from "../processes.ts";
import type { Caller } from "../caller.ts";
import type { ServiceProcess } from "../service.ts";
import { afterFaults, type FaultStage, openServedStage, SETUP_MS, type Way } from "./fault-stage.ts";
import { actedPoints, ELSEWHERE, RUN_POINTS, runPointsOf } from "./run-failpoints.ts";
import { inTier } from "../tiers.ts";

let stage: FaultStage;
let caller: Caller;

before(
  async () => {
    ({ stage, caller } = await openServedStage());
  },
  { timeout: SETUP_MS },
);
after(async () => await stage?.[Symbol.asyncDispose]());

const serveWorker = async (failpoints = "", concurrency = 20): Promise<ServiceProcess> =>
  await stage.installation.serveProcess(
    { LATCHKEY_FAILPOINTS: failpoints, LATCHKEY_WORKER_CONCURRENCY: String(concurrency) },
    ["worker"],
  );

const trigger = async (...ways: readonly Way[]): Promise<readonly string[]> =>
  await Promise.all(ways.map(async (way) => await stage.trigger(caller, way)));

/** Two runs that stand in the middle of reading, until their worker is gone. */
async function triggerHeld(): Promise<{ readonly ids: readonly string[]; readonly release: () => void }> {
  const release = stage.holdReads();
  const ids = await trigger("reads", "reads");
  const areReading = async (): Promise<true | undefined> =>
    ids.every((id) => stage.reads(id).length > 0) ? true : undefined;
  await eventually("both are reading", areReading, PATIENCE_MS);
  return { ids, release };
}

const arm = (points: readonly Failpoint[], action: string): string =>
  points.map((point) => `${point}=${action}`).join(",");

function assertActed(action: "kill" | "throw", points: readonly Failpoint[]): void {
  assert.deepEqual(
    actedPoints(stage.installation, action),
    points.toSorted((a, b) => a.localeCompare(b)),
  );
}

test("every fail-point is enumerated: here, or where requests come by it", () => {
  const missing = FAILPOINTS.filter((point) => !(point in RUN_POINTS) && !ELSEWHERE.test(point));
  assert.deepEqual(missing, []);
});

/** A worker that dies at a point, started while others carry on what the one before has left: it may meet that and die early. */
async function serveDying(point: Failpoint, left: readonly string[]): Promise<ServiceProcess> {
  const early = await serveWorker(`${point}=kill`).catch(() => null);
  await stage.ended(left);
  return early === null || isDead(early.child) ? await serveWorker(`${point}=kill`) : early;
}

async function dieAt(point: Failpoint, dying: ServiceProcess): Promise<readonly string[]> {
  const scenario = RUN_POINTS[point as keyof typeof RUN_POINTS];
  if (scenario === "drain") {
    const { ids, release } = await triggerHeld();
    dying.child.kill("SIGTERM");
    await untilDead(dying);
    release();
    return ids;
  }
  const ids = await trigger(
    ...(scenario === "breaks" ? (["breaks", "breaks"] as const) : (["whole", "whole"] as const)),
  );
  await untilDead(dying);
  return ids;
}

/** What a worker is about to keep: an end, a hand-over. Of a step it is flow/crash, of a write flow/writes-crash. */
const REPRESENTATIVES: readonly Failpoint[] = ["run.before_complete", "run.before_release"];

test(
  "killed with -9 at every point of a run, two in flight: all end as they should, and nothing is written twice",
  { timeout: 900_000 },
  async () => {
    const points = inTier(runPointsOf("whole", "breaks", "drain"), (point) =>
      REPRESENTATIVES.includes(point),
    );
    const breaking = points.filter((point) => runPointsOf("breaks").includes(point));
    const steady = await serveWorker();
    const runs: string[] = [];
    let last: readonly string[] = [];
    for (const point of points) {
      const dying = await serveDying(point, last);
      // Asleep, so that both runs are the other's; awake again, it takes them over.
      steady.child.kill("SIGSTOP");
      try {
        last = await dieAt(point, dying);
      } finally {
        steady.child.kill("SIGCONT");
      }
      assert.equal(dying.child.signalCode, "SIGKILL", point);
      runs.push(...last);
    }
    const rows = await stage.outlived(caller, runs);
    await steady.end("SIGKILL");
    assertActed("kill", points);
    // Those of the two points of failing: no matter who dies there, the target's answer is what the run fails of.
    assert.deepEqual(
      rows.filter(({ status }) => status !== "completed").map(({ status, kind }) => [status, kind]),
      Array.from({ length: 2 * breaking.length }, () => ["failed", "target"]),
    );
    await stage.check(caller, runs);
    await afterFaults(stage);
  },
);

for (const point of inTier(runPointsOf("take_over"), (each) => each === "worker.after_take_over")) {
  test(
    `killed with -9 at ${point}, the runs of both dead workers go on elsewhere`,
    { timeout: 400_000 },
    async () => {
      const first = await serveWorker();
      const { ids, release } = await triggerHeld();
      const second = await serveWorker(`${point}=kill`);
      await first.end("SIGKILL");
      assert.equal(await untilDead(second), "SIGKILL");
      release();
      const third = await serveWorker();
      const rows = await stage.ended(ids);
      assert.deepEqual(
        rows.map(({ status }) => status),
        ["completed", "completed"],
      );
      await stage.check(caller, ids);
      await third.end("SIGKILL");
    },
  );
}

test(
  "an error at every point of a run: each run ends or goes on, none hangs, and nothing is written twice",
  { timeout: 400_000 },
  async () => {
    const points = runPointsOf("whole", "breaks");
    // One run a point, and some that find all of them spent.
    const worker = await serveWorker(arm(points, "throw"), 60);
    const ids = await trigger(...points.map(() => "whole" as const), "breaks", "breaks", "whole", "whole");
    const rows = await stage.ended(ids);
    assert.ok(rows.some(({ status }) => status === "completed"));
    assert.ok(rows.some(({ kind }) => kind === "internal"));
    await stage.check(caller, ids);
    await worker.end("SIGKILL");
    assertActed("throw", points);
    await afterFaults(stage);
  },
);

test(
  "an error while runs are handed back, and while they are taken over: the process ends, the runs go on",
  { timeout: 400_000 },
  async () => {
    const first = await serveWorker(arm(runPointsOf("drain"), "throw"));
    const held = await triggerHeld();
    assert.equal(await first.end("SIGTERM"), 0);
    const second = await serveWorker();
    await eventually(
      "both read again",
      async () => (held.ids.every((id) => stage.reads(id).length > 1) ? true : undefined),
      PATIENCE_MS,
    );
    const third = await serveWorker(arm(runPointsOf("take_over"), "throw"));
    await second.end("SIGKILL");
    held.release();
    const rows = await stage.ended(held.ids);
    assert.deepEqual(
      rows.map(({ status }) => status),
      ["completed", "completed"],
    );
    await stage.check(caller, held.ids);
    await third.end("SIGKILL");
    assertActed("throw", runPointsOf("whole", "breaks", "drain", "take_over"));
    await afterFaults(stage);
  },
);
