import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "#db/connection/pool.ts";
import { costsBetween, lookAtCosts, type Costs } from "./costs.ts";
import { cpuSecondsOf, machineCpuSeconds } from "./cpu.ts";
import type { Latencies } from "./runs-latency.ts";
import type { BenchServer } from "./server.ts";

/** Something that carries runs, ours or another's. */
export interface Contender {
  readonly id: string;
  readonly title: string;
  /** Its own database, and the server with it. */
  readonly db: Database;
  readonly server: BenchServer;
  /** So many runs that nobody carries yet; what was there before is gone. */
  prefill(count: number): Promise<void>;
  /** Starts worker processes; their disposal ends them. */
  startWorkers(count: number): Promise<Workers>;
  /** Runs that are over since `prefill`. Throws when one has failed. */
  finished(): Promise<number>;
  /** From trigger to completed, at a rate that leaves the machine mostly idle. */
  runLightly(rate: number, seconds: number): Promise<Latencies>;
}

export interface Workers extends AsyncDisposable {
  readonly pids: readonly number[];
}

export interface DrainTiming {
  /** From the first run that is over. */
  readonly warmSeconds: number;
  readonly seconds: number;
}

export interface Drain {
  readonly perSecond: number;
  /** Of a run. */
  readonly costs: Costs;
  /** Cores that anything else on the machine had meanwhile. */
  readonly otherCores: number;
}

const FIRST_RUN_WAIT_MS = 30_000;
const LOOK_EVERY_MS = 25;
/** Of what the last drain would have taken, so that the backlog does not end before the time does. */
const SPARE = 1.6;
const BACKLOG_MIN = 500;
const BACKLOG_MAX = 600_000;
const TRIES = 4;
const RUNS_MIN = 200;
const LONGER_MAX = 4;

/** Runs a second that each contender drained last: how large the next backlog must be. */
const lastPerSecond = new Map<string, number>();

/** Drains a backlog for a while; with a larger one once more when it did not last. */
export async function measureDrain(
  contender: Contender,
  workers: number,
  timing: DrainTiming,
  firstGuess: number,
): Promise<Drain> {
  let guess = lastPerSecond.get(contender.id) ?? firstGuess;
  for (let tries = 1; ; tries++) {
    const wanted = Math.ceil(guess * (timing.warmSeconds + timing.seconds) * SPARE);
    const backlog = Math.min(Math.max(wanted, BACKLOG_MIN), BACKLOG_MAX);
    await contender.prefill(backlog);
    // What the filling has left to do is not the drain's.
    await contender.db.query({ text: "checkpoint", timeoutMs: 60_000 });
    const { drain, lasted } = await drainOnce(contender, workers, timing, backlog);
    if (lasted || tries === TRIES || backlog === BACKLOG_MAX) {
      lastPerSecond.set(contender.id, drain.perSecond);
      return drain;
    }
    guess = Math.max(guess * 2.5, drain.perSecond * 2);
  }
}

async function drainOnce(
  contender: Contender,
  count: number,
  timing: DrainTiming,
  backlog: number,
): Promise<{ readonly drain: Drain; readonly lasted: boolean }> {
  await using workers = await contender.startWorkers(count);
  const { server } = contender;
  const roots = [process.pid, server.postmaster, ...workers.pids];
  const look = async () => ({
    finished: await contender.finished(),
    costs: await lookAtCosts(server, workers.pids),
    atMs: performance.now(),
    otherSeconds: machineCpuSeconds() - cpuSecondsOf(roots),
  });
  const givenUpMs = performance.now() + FIRST_RUN_WAIT_MS;
  while ((await contender.finished()) === 0) {
    if (performance.now() > givenUpMs) throw new Error(`${contender.title}: no run ended`);
    await sleep(LOOK_EVERY_MS);
  }
  await sleep(timing.warmSeconds * 1_000);
  const before = await look();
  await sleep(timing.seconds * 1_000);
  let after = await look();
  // On a busy machine a short while has hardly a run in it.
  for (let longer = 1; longer < LONGER_MAX && after.finished - before.finished < RUNS_MIN; longer++) {
    await sleep(timing.seconds * 1_000);
    after = await look();
  }
  const seconds = (after.atMs - before.atMs) / 1_000;
  const runs = after.finished - before.finished;
  const costs = await costsBetween(server, before.costs, after.costs, runs);
  return {
    lasted: after.finished < backlog,
    drain: {
      perSecond: runs / seconds,
      costs,
      otherCores: Math.max((after.otherSeconds - before.otherSeconds) / seconds, 0),
    },
  };
}
