import { setTimeout as sleep } from "node:timers/promises";
import { run as runGraphileWorker, Logger, type Runner, type WorkerEvents } from "graphile-worker";
import { EventEmitter } from "node:events";
import { admitSoon } from "#actions/admit-runs.ts";
import { purgeOldRuns } from "#actions/purge-runs.ts";
import { timeOutReviews } from "#actions/time-out-reviews.ts";
import { sweepObjects } from "#actions/sweep-objects.ts";
import { addMissingJobs, addRunJobs, listAccountsWithWaitingRuns } from "#db/admission.ts";
import { deleteOutdatedKeys } from "#db/idempotency.ts";
import type { DatabaseSource } from "#db/pool.ts";
import { listRunsToStop, releaseOrphans, savePoolIds, takeOverDeadWorkers } from "#db/workers.ts";
import { limits } from "#domain/limits.ts";
import { executeRun } from "#engine/execute-run.ts";
import { RunStopped } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";
import { sweepScratch } from "#engine/sweep-scratch.ts";
import { describeError } from "#lib/log.ts";
import { join, type Membership } from "./liveness.ts";

const TAKE_OVER_EVERY_MS = 500;
const WATCH_EVERY_MS = 1_000;
const RECONCILE_EVERY_MS = 2_000;
const TIME_OUT_REVIEWS_EVERY_MS = 1_000;
const REJOIN_EVERY_MS = 1_000;
const SWEEP_SCRATCH_EVERY_MS = 10 * 60_000;
const HOUSEKEEPING = "*/10 * * * * housekeeping\n7 * * * * sweep_objects";

/** Carries runs on graphile-worker. The run row is the truth; a job is only the message that the run may go on. */
export class Worker {
  readonly #services: EngineServices;
  readonly #source: DatabaseSource;
  readonly #carried = new Map<string, AbortController>();
  readonly #poolIds: string[] = [];
  readonly #timers: NodeJS.Timeout[] = [];
  #unsubscribe: () => void = () => {};
  #membership: Membership | null = null;
  #runner: Runner | null = null;
  #stopping = false;

  private constructor(services: EngineServices, source: DatabaseSource) {
    this.#services = services;
    this.#source = source;
  }

  static async start(services: EngineServices, source: DatabaseSource, concurrency: number): Promise<Worker> {
    const worker = new Worker(services, source);
    await worker.#join();
    await worker.#takeOver();
    await worker.#startRunner(concurrency);
    worker.#every(TAKE_OVER_EVERY_MS, () => worker.#takeOver());
    worker.#every(WATCH_EVERY_MS, () => worker.#watch());
    worker.#every(RECONCILE_EVERY_MS, () => worker.#reconcile());
    worker.#every(TIME_OUT_REVIEWS_EVERY_MS, () => timeOutReviews(services));
    // Only a hint, so that a run that was cancelled anywhere stops at once; else the next look finds it.
    worker.#unsubscribe = services.news.subscribe({
      stop: (runIds) => void worker.#quietly(() => worker.#stopRuns(runIds)),
    });
    await worker.#reconcile();
    // At the start and then seldom: the folder is this machine's, and a job may be another's.
    void worker.#quietly(() => sweepScratch(services));
    worker.#every(SWEEP_SCRATCH_EVERY_MS, () => sweepScratch(services));
    return worker;
  }

  /** Stops taking jobs, hands the runs under way back, and leaves. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#unsubscribe();
    for (const timer of this.#timers) clearInterval(timer);
    for (const stop of this.#carried.values()) stop.abort(new RunStopped("drain"));
    await this.#runner?.stop();
    await this.#membership?.leave();
  }

  async #startRunner(concurrency: number): Promise<void> {
    const events = new EventEmitter() as WorkerEvents;
    events.on("pool:create", ({ workerPool }) => {
      this.#poolIds.push(workerPool.id);
      const workerId = this.#membership?.workerId;
      if (workerId) void this.#quietly(() => savePoolIds(this.#services.db, workerId, this.#poolIds));
    });
    const logger = new Logger(() => (level, message) => {
      if (level === "error") this.#services.log.error({ from: "graphile-worker" }, message.slice(0, 300));
    });
    this.#runner = await runGraphileWorker({
      pgPool: this.#services.db.pool,
      concurrency,
      noHandleSignals: true,
      pollInterval: 1_000,
      events,
      logger,
      crontab: HOUSEKEEPING,
      taskList: {
        execute_run: async (payload) => await this.#execute((payload as { runId: string }).runId),
        housekeeping: async () => await this.#keepHouse(),
        sweep_objects: async () => await sweepObjects(this.#services),
      },
    });
    // Its promise ends with the runner; a failure there is told, and the reconciler of another process goes on.
    this.#runner.promise.catch((error: unknown) => {
      if (!this.#stopping) this.#services.log.error(describeError(error), "the job runner ended");
    });
  }

  async #execute(runId: string): Promise<void> {
    const workerId = this.#membership?.workerId;
    // Between two memberships nothing may be claimed. The reconciler gives the run its job again.
    if (workerId === undefined || this.#stopping || this.#carried.has(runId)) return;
    const outcome = await executeRun(this.#services, runId, workerId, (id, stop) => {
      this.#carried.set(id, stop);
      return () => this.#carried.delete(id);
    }).catch((error: unknown) => {
      // The job runner logs the message of what a task throws and keeps it in its table; the database's may quote values.
      this.#services.log.error({ runId, ...describeError(error) }, "a run could not be carried");
      throw new Error(`the run could not be carried (${describeError(error).error})`);
    });
    if (outcome.kind === "ended" || outcome.kind === "parked") admitSoon(this.#services, outcome.accountId);
    if (outcome.kind === "released") await addRunJobs(this.#services.db, [outcome.runId]);
  }

  async #join(): Promise<void> {
    this.#membership = await join(this.#services.db, this.#source, this.#poolIds, this.#services.log, () => {
      this.#membership = null;
      // Design, page 2: a worker that loses its liveness stops its runs before it joins again.
      for (const stop of this.#carried.values()) stop.abort(new RunStopped("lease_lost"));
      void this.#rejoin();
    });
    // Told to stop while it joined again: nobody else would leave.
    if (this.#stopping) await this.#membership.leave();
  }

  async #rejoin(): Promise<void> {
    while (!this.#stopping && this.#membership === null) {
      await sleep(REJOIN_EVERY_MS);
      if (this.#carried.size === 0 && !this.#stopping) await this.#quietly(() => this.#join());
    }
  }

  async #takeOver(): Promise<void> {
    const workerId = this.#membership?.workerId;
    if (workerId === undefined) return;
    const runs = await takeOverDeadWorkers(this.#services.db, workerId, limits.heartbeatStaleMs);
    if (runs.length === 0) return;
    this.#services.log.warn({ runs: runs.length }, "took over the runs of a dead worker");
    await addRunJobs(this.#services.db, runs);
  }

  async #watch(): Promise<void> {
    await this.#stopRuns([...this.#carried.keys()]);
  }

  /** Stops those of these runs that this worker carries and that must not go on. */
  async #stopRuns(runIds: readonly string[]): Promise<void> {
    const workerId = this.#membership?.workerId;
    const carried = runIds.filter((id) => this.#carried.has(id));
    if (workerId === undefined || carried.length === 0) return;
    for (const { runId, reason } of await listRunsToStop(this.#services.db, workerId, carried)) {
      // A run that is only just being claimed has no lease yet: it is not asked twice whether it is lost.
      if (reason !== "lease_lost") this.#carried.get(runId)?.abort(new RunStopped(reason));
    }
  }

  async #reconcile(): Promise<void> {
    const { db } = this.#services;
    const workerId = this.#membership?.workerId;
    if (workerId === undefined) return;
    await releaseOrphans(db, workerId, [...this.#carried.keys()]);
    for (const accountId of await listAccountsWithWaitingRuns(db)) admitSoon(this.#services, accountId);
    await addMissingJobs(db);
  }

  async #keepHouse(): Promise<void> {
    await deleteOutdatedKeys(this.#services.db);
    await purgeOldRuns(this.#services);
  }

  #every(ms: number, task: () => Promise<void>): void {
    let underway = false;
    this.#timers.push(
      setInterval(() => {
        if (underway || this.#stopping) return;
        underway = true;
        void this.#quietly(task).finally(() => {
          underway = false;
        });
      }, ms),
    );
  }

  /** Work that is done again soon anyway: a failure is logged and no more. */
  async #quietly(task: () => Promise<unknown>): Promise<void> {
    try {
      await task();
    } catch (error) {
      this.#services.log.warn(describeError(error), "the worker's upkeep failed; it is tried again");
    }
  }
}
