import { setTimeout as sleep } from "node:timers/promises";
import { run as runGraphileWorker, Logger, type Runner, type WorkerEvents } from "graphile-worker";
import { EventEmitter } from "node:events";
import { deleteOldKeys } from "#actions/delete-old-keys.ts";
import { noteExpired } from "#actions/note-expired-sessions.ts";
import { purgeOldRuns } from "#actions/purge-runs.ts";
import { addUpStoredBytes } from "#db/account-usage.ts";
import { timeOutReviews } from "#actions/time-out-reviews.ts";
import { sweepObjects } from "#actions/sweep-objects.ts";
import { listAccountsWithWaitingRuns } from "#db/admission.ts";
import { isConnectionLost } from "#db/database-errors.ts";
import { addMissingJobs, addRunJob, addRunJobLater, addRunJobs } from "#db/jobs.ts";
import type { DatabaseSource } from "#db/pool.ts";
import { isSuspect, type ClaimedRun } from "#db/runs.ts";
import {
  freeJobs,
  freeRunsOfNobody,
  listLeases,
  listRunsToStop,
  releaseOrphans,
  savePoolIds,
  takeOverDeadWorkers,
} from "#db/workers.ts";
import { limits } from "#domain/limits.ts";
import { carryRun, executeRun, type RunOutcome } from "#engine/execute-run.ts";
import { RunStopped } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";
import { sweepScratch } from "#engine/sweep-scratch.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError } from "#lib/log.ts";
import { join, type Membership } from "./liveness.ts";
import { RunTaker } from "./run-taker.ts";
import { SuspectLane } from "./suspect-lane.ts";

const POLL_EVERY_MS = 1_000;
const TAKE_OVER_EVERY_MS = 250;
const WATCH_EVERY_MS = 1_000;
const RECONCILE_EVERY_MS = 2_000;
const TIME_OUT_REVIEWS_EVERY_MS = 1_000;
const REJOIN_EVERY_MS = 1_000;
const SWEEP_SCRATCH_EVERY_MS = 10 * 60_000;
/** One queue, so that one of them runs at a time among all workers; a job that is late is not added twice. */
const HOUSEKEEPING = ["*/10 * * * * housekeeping", "7 * * * * sweep_objects"]
  .map((entry) => `${entry} ?queue=chores&jobKey=${entry.split(" ").at(-1)}`)
  .join("\n");

/** A run that this worker carries. */
interface Carried {
  /** Null until it is claimed. */
  readonly accountId: string | null;
  readonly stop: AbortController;
  readonly over: Promise<void>;
}

export interface WorkerOptions {
  /** Runs at once. */
  readonly concurrency: number;
  /** Finishes the sign-in of an end user that a process without the vault's keys has handed over. Never throws. */
  readonly finishSignIn: (stateHash: Uint8Array) => Promise<void>;
}

/**
 * Carries runs. Those that wait it takes itself while it has room; those that somebody has begun and left come as jobs of
 * graphile-worker, besides. The run row is the truth; a job is only the message that the run may go on.
 */
export class Worker {
  readonly #services: EngineServices;
  readonly #source: DatabaseSource;
  readonly #concurrency: number;
  readonly #finishSignIn: (stateHash: Uint8Array) => Promise<void>;
  readonly #carried = new Map<string, Carried>();
  readonly #taker: RunTaker;
  readonly #lane: SuspectLane;
  readonly #poolIds: string[] = [];
  readonly #timers: NodeJS.Timeout[] = [];
  #unsubscribe: () => void = () => {};
  #membership: Membership | null = null;
  #runner: Runner | null = null;
  #stopping = false;
  #mustFreeJobs = false;

  private constructor(
    services: EngineServices,
    source: DatabaseSource,
    { concurrency, finishSignIn }: WorkerOptions,
  ) {
    this.#services = services;
    this.#source = source;
    this.#concurrency = concurrency;
    this.#finishSignIn = finishSignIn;
    this.#taker = new RunTaker({
      db: services.db,
      log: services.log,
      workerId: () => this.#membership?.workerId ?? null,
      room: () => this.#concurrency - this.#carried.size,
      carried: () => this.#countByAccount(),
      begin: (run, workerId) => this.#begin(run, workerId),
    });
    this.#lane = new SuspectLane({
      between: async (task) => await this.#taker.between(task),
      company: () => [...this.#carried.values()].map(({ over }) => over),
      handBack: () => this.#stopCarried("drain"),
      isStopped: () => this.#stopping,
    });
  }

  static async start(
    services: EngineServices,
    source: DatabaseSource,
    options: WorkerOptions,
  ): Promise<Worker> {
    const worker = new Worker(services, source, options);
    await worker.#join();
    // As ever after: what fails now is tried again. A start that broke off here would leave a member that carries nothing.
    await worker.#quietly(() => worker.#takeOver());
    process.on("unhandledRejection", worker.#hearUnhandled);
    await worker.#startRunner();
    worker.#every(TAKE_OVER_EVERY_MS, () => worker.#takeOver());
    worker.#every(WATCH_EVERY_MS, () => worker.#watch());
    worker.#every(RECONCILE_EVERY_MS, () => worker.#reconcile());
    worker.#every(TIME_OUT_REVIEWS_EVERY_MS, () => timeOutReviews(services));
    // Only hints, so that a run that was triggered or cancelled anywhere begins or stops at once; else the next look finds it.
    worker.#unsubscribe = services.news.subscribe({
      waiting: (accountIds) => worker.#taker.wake(accountIds, true),
      stop: (runIds) => void worker.#quietly(() => worker.#stopRuns(runIds)),
    });
    await worker.#quietly(() => worker.#reconcile());
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
    // First, so that what is handed back is not given to this worker again.
    const stopped = this.#runner?.stop();
    this.#stopCarried("drain");
    await this.#taker.stop();
    await Promise.all([stopped, ...[...this.#carried.values()].map(({ over }) => over)]);
    await this.#membership?.leave();
    // Other workers have room for them.
    this.#services.news.tellOfWaiting(this.#taker.accountIds);
    process.off("unhandledRejection", this.#hearUnhandled);
  }

  /**
   * The job runner does not wait for the end of a job to be written: when the database is away just then, its error is nobody's
   * and would end the process. The job stays locked in the runner's name until it is freed. Any other such error ends the process.
   */
  readonly #hearUnhandled = (error: unknown): void => {
    if (!isConnectionLost(error)) throw error;
    this.#services.log.warn(describeError(error), "the database was lost at a job's end; its lock is freed");
    this.#mustFreeJobs = true;
  };

  async #startRunner(): Promise<void> {
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
      concurrency: this.#concurrency,
      noHandleSignals: true,
      pollInterval: POLL_EVERY_MS,
      // One look for all places, and what can't begin soon goes back for others.
      preset: { worker: { localQueue: { size: this.#concurrency, ttl: POLL_EVERY_MS } } },
      events,
      logger,
      crontab: HOUSEKEEPING,
      taskList: {
        execute_run: async (payload) => await this.#execute((payload as { runId: string }).runId),
        housekeeping: async () => await this.#keepHouse(),
        sweep_objects: async () => void (await sweepObjects(this.#services)),
        finish_sign_in: async (payload) =>
          await this.#finishSignIn(Buffer.from((payload as { stateHash: string }).stateHash, "hex")),
      },
    });
    // Its promise ends with the runner; a failure there is told, and the reconciler of another process goes on.
    this.#runner.promise.catch((error: unknown) => {
      if (!this.#stopping) this.#services.log.error(describeError(error), "the job runner ended");
    });
  }

  /** A run that was taken: it is leased to this worker already. */
  #begin(run: ClaimedRun, workerId: string): void {
    const stop = new AbortController();
    const over = carryRun(this.#services, run, workerId, stop)
      .catch((error: unknown): RunOutcome => {
        // It stays leased until the reconciler finds that nobody carries it, and goes on by a job.
        this.#noteUncarried(run.id, error);
        return { kind: "adrift" };
      })
      .then(async (outcome) => await this.#follow(run.id, outcome));
    this.#carried.set(run.id, { accountId: run.accountId, stop, over });
    if (this.#stopping) stop.abort(new RunStopped("drain"));
    else if (this.#membership?.workerId !== workerId) stop.abort(new RunStopped("lease_lost"));
  }

  /** A job's run. */
  async #execute(runId: string): Promise<void> {
    const { db, log } = this.#services;
    const isSuspectHere = async (): Promise<boolean> =>
      await isSuspect(db, runId, this.#membership?.workerId ?? "");
    if (!this.#lane.isClosed) {
      if ((await this.#carryJob(runId, false)) !== "suspect") return;
    } else if (!(await isSuspectHere())) {
      // Other workers may have it meanwhile.
      return await addRunJobLater(db, runId, POLL_EVERY_MS);
    }
    log.warn({ runId }, "a run that has lost its workers without getting further is carried alone");
    const carry = async () => await this.#carryJob(runId, true);
    if (!(await this.#lane.carry({ carry, isSuspect: isSuspectHere }))) await addRunJob(db, runId);
  }

  async #carryJob(runId: string, isAlone: boolean): Promise<RunOutcome["kind"]> {
    const workerId = this.#membership?.workerId;
    // Between two memberships nothing may be claimed. The reconciler gives the run its job again.
    if (workerId === undefined || this.#stopping || this.#carried.has(runId)) return "skipped";
    const stop = new AbortController();
    const { promise: over, resolve } = Promise.withResolvers<void>();
    // Before the claim: a run that is leased and not registered counts as left behind.
    this.#carried.set(runId, { accountId: null, stop, over });
    try {
      const outcome = await executeRun(this.#services, runId, workerId, stop, isAlone);
      await this.#follow(runId, outcome);
      return outcome.kind;
    } catch (error) {
      // The job runner logs the message of what a task throws and keeps it in its table; the database's may quote values.
      this.#noteUncarried(runId, error);
      throw new Error(`the run could not be carried (${describeError(error).error})`);
    } finally {
      this.#carried.delete(runId);
      resolve();
    }
  }

  /** After a run was carried: whatever waits for its place may begin. */
  async #follow(runId: string, outcome: RunOutcome): Promise<void> {
    if (outcome.kind === "released") {
      await this.#quietly(async () => await addRunJob(this.#services.db, runId));
    }
    if (outcome.kind === "delayed") {
      await this.#quietly(async () => await addRunJobLater(this.#services.db, runId, outcome.delayMs));
    }
    this.#carried.delete(runId);
    if (outcome.kind === "ended" || outcome.kind === "parked") this.#taker.freed(outcome.accountId);
    else this.#taker.wake([]);
  }

  #noteUncarried(runId: string, error: unknown): void {
    this.#services.log.error({ runId, ...describeError(error) }, "a run could not be carried");
  }

  #stopCarried(reason: "drain" | "lease_lost"): void {
    for (const { stop } of this.#carried.values()) stop.abort(new RunStopped(reason));
  }

  #countByAccount(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { accountId } of this.#carried.values()) {
      if (accountId !== null) counts.set(accountId, (counts.get(accountId) ?? 0) + 1);
    }
    return counts;
  }

  async #join(): Promise<void> {
    const { db, log, fence } = this.#services;
    this.#membership = await join(db, this.#source, this.#poolIds, log, fence, () => {
      this.#membership = null;
      // Design, page 2: a worker that loses its liveness stops its runs before it joins again.
      this.#stopCarried("lease_lost");
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
    await failpoint("worker.after_take_over");
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
      if (reason !== "lease_lost") this.#carried.get(runId)?.stop.abort(new RunStopped(reason));
    }
  }

  async #reconcile(): Promise<void> {
    const { db } = this.#services;
    const workerId = this.#membership?.workerId;
    if (workerId === undefined) return;
    // What is being taken is leased before it is carried.
    await this.#taker.between(async () => {
      const leases = await listLeases(db, workerId);
      // Compared now, after the look: a job registers its run before it claims it.
      const orphans = leases.filter(({ runId }) => !this.#carried.has(runId));
      await releaseOrphans(db, workerId, orphans);
    });
    await freeRunsOfNobody(db);
    if (this.#mustFreeJobs) {
      await freeJobs(db, this.#poolIds);
      this.#mustFreeJobs = false;
    }
    this.#taker.wake(await listAccountsWithWaitingRuns(db));
    await addMissingJobs(db);
  }

  /** Personal data first. What fails keeps nothing else from being done. */
  async #keepHouse(): Promise<void> {
    await this.#quietly(async () => await purgeOldRuns(this.#services));
    await this.#quietly(async () => await noteExpired(this.#services));
    await this.#quietly(async () => await deleteOldKeys(this.#services.db));
    await this.#quietly(async () => await addUpStoredBytes(this.#services.db));
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
