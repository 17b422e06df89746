import { fireSchedules } from "#actions/schedules/fire-schedules.ts";
import { timeOutReviews } from "#actions/reviews/time-out-reviews.ts";
import { indexRuns } from "#actions/upkeep/index-runs.ts";
import { listAccountsToServe } from "#db/runs/admission.ts";
import { callOverdueQueued } from "#db/runs/lines.ts";
import { callToBrowsers, saveBrowsers } from "#db/runs/browser-line.ts";
import { wakePolls } from "#db/runs/polls.ts";
import { passRunTimers } from "#db/runs/run-timers.ts";
import type { ChangeListener } from "#db/runs/run-notifier.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import {
  freeOrphanedRuns,
  listLeases,
  listRunsToStop,
  listWorkers,
  releaseOrphans,
  takeOverDeadWorkers,
  type SeenWorker,
} from "#db/runs/workers.ts";
import { delayRun, type RunOutcome } from "#engine/end-run.ts";
import { executeRun } from "#engine/execute-run.ts";
import { RunStopped } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";
import { sweepScratch } from "#engine/outputs/sweep-scratch.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError } from "#lib/log.ts";
import { metrics } from "#lib/metrics.ts";
import type { Chores } from "./chores.ts";
import { join, type Membership, type OpenLivenessSession } from "./liveness.ts";
import { PeerWatch } from "./peer-watch.ts";
import type { Quarantine } from "./quarantine.ts";
import { RunPace } from "./run-pace.ts";
import { RunTaker } from "./run-taker.ts";
import { logFailure } from "./upkeep.ts";

const TAKE_OVER_EVERY_MS = 250;
const WATCH_EVERY_MS = 1_000;
const RECONCILE_EVERY_MS = 2_000;
const TIME_OUT_REVIEWS_EVERY_MS = 1_000;
const WAKE_POLLS_EVERY_MS = 1_000;
const CALL_TO_BROWSERS_EVERY_MS = 1_000;
const PASS_TIMERS_EVERY_MS = 1_000;
const FIRE_SCHEDULES_EVERY_MS = 1_000;
const INDEX_RUNS_EVERY_MS = 1_000;
const LIVE_PICTURES_EVERY_MS = 1_000;
const REJOIN_EVERY_MS = 1_000;
const SWEEP_SCRATCH_EVERY_MS = 10 * 60_000;
/** Consecutive polls without a quarantined run after which a quarantine process ends. */
const IDLE_LOOKS_MAX = 3;
/** A run that this worker executes. */
interface ActiveRun {
  readonly accountId: string;
  readonly stop: AbortController;
  readonly over: Promise<void>;
}

export interface WorkerOptions {
  /** Maximum number of concurrent runs. */
  readonly concurrency: number;
  readonly openSession: OpenLivenessSession;
  readonly chores: Pick<Chores, "poolIds" | "start" | "freeLeft" | "stop" | "close">;
  /** Where its suspects are executed. */
  readonly quarantine: Pick<Quarantine, "look" | "stop">;
}

/** For a worker that is itself in quarantine. */
export type QuarantinedOptions = Pick<WorkerOptions, "openSession">;

/**
 * Executes runs and chores. Runs are leased rows, which the worker takes while it has free slots: waiting ones, and those that were handed
 * back or abandoned. Chores (housekeeping, handed-over sign-ins) are jobs of graphile-worker. In quarantine it executes one run at a
 * time and no chores.
 */
export class Worker {
  readonly #services: EngineServices;
  readonly #openSession: OpenLivenessSession;
  /** null: this worker is itself in quarantine. */
  readonly #quarantine: WorkerOptions["quarantine"] | null;
  readonly #active = new Map<string, ActiveRun>();
  readonly #pace: RunPace;
  readonly #taker: RunTaker;
  readonly #peers = new PeerWatch();
  readonly #chores: WorkerOptions["chores"] | null;
  readonly #timers: (() => void)[] = [];
  #unsubscribe: () => void = () => {};
  #membership: Membership | null = null;
  #stopping = false;
  #idleLooks = 0;
  /** Without one, it takes no runs that were called to a browser. */
  #hasBrowser = false;
  /** What its row has of its browsers. */
  #saidBrowsers = "";
  readonly #idle = Promise.withResolvers<void>();

  private constructor(services: EngineServices, options: QuarantinedOptions & Partial<WorkerOptions>) {
    const { openSession, concurrency = 1, chores = null, quarantine = null } = options;
    this.#services = services;
    this.#openSession = openSession;
    this.#pace = new RunPace(concurrency);
    this.#quarantine = quarantine;
    this.#chores = chores;
    this.#taker = new RunTaker({
      db: services.db,
      log: services.log,
      clock: services.clock,
      takes: quarantine === null ? "suspect" : "plain",
      workerId: () => this.#membership?.workerId ?? null,
      room: () => this.#pace.slots - this.#active.size,
      hasBrowser: () => this.#hasBrowser,
      active: () => this.#countByAccount(),
      begin: (run, workerId) => this.#begin(run, workerId),
    });
  }

  static async start(services: EngineServices, options: WorkerOptions): Promise<Worker> {
    const worker = new Worker(services, options);
    await worker.#join();
    // Failures are retried here as later. A start that broke off would leave a member that executes nothing.
    await worker.#logFailure(() => worker.#takeOver());
    await options.chores.start(() => worker.#membership?.workerId ?? null, worker.#pace);
    worker.#every(TAKE_OVER_EVERY_MS, () => worker.#takeOver());
    worker.#every(TIME_OUT_REVIEWS_EVERY_MS, () => timeOutReviews(services));
    worker.#every(WAKE_POLLS_EVERY_MS, () => worker.#wake(wakePolls));
    worker.#every(FIRE_SCHEDULES_EVERY_MS, async () => void (await fireSchedules(services)));
    worker.#every(PASS_TIMERS_EVERY_MS, () => worker.#wake(passRunTimers));
    worker.#every(CALL_TO_BROWSERS_EVERY_MS, () => worker.#callToBrowsers());
    services.browsers.watchPlaces(() => void worker.#logFailure(() => worker.#callToBrowsers()));
    let indexedToMs: number | null = null;
    worker.#every(INDEX_RUNS_EVERY_MS, async () => {
      indexedToMs = await indexRuns(services, indexedToMs);
    });
    await worker.#logFailure(() => worker.#callToBrowsers());
    await worker.#takeRuns();
    // At the start and then rarely, and not as a chore: the folder is local, but a chore may run on another machine.
    void worker.#logFailure(() => sweepScratch(services));
    worker.#every(SWEEP_SCRATCH_EVERY_MS, () => sweepScratch(services));
    void worker.#logFailure(() => services.browsers.sweep());
    return worker;
  }

  /** The worker of a quarantine process. Other workers clean up after it. */
  static async startQuarantined(services: EngineServices, options: QuarantinedOptions): Promise<Worker> {
    const worker = new Worker(services, options);
    await worker.#join();
    await worker.#takeRuns();
    return worker;
  }

  /** Number of runs in progress. */
  get activeCount(): number {
    return this.#active.size;
  }

  /** Only in quarantine: resolves when there is nothing left to execute. */
  get idle(): Promise<void> {
    return this.#idle.promise;
  }

  async #takeRuns(): Promise<void> {
    this.#every(WATCH_EVERY_MS, () => this.#watch());
    this.#every(RECONCILE_EVERY_MS, () => this.#reconcile());
    this.#every(LIVE_PICTURES_EVERY_MS, () => this.#services.liveViews.look());
    // Only hints, so that a run that was triggered or cancelled anywhere begins or stops immediately; otherwise the next poll finds it.
    const stop = (runIds: readonly string[]): void => void this.#logFailure(() => this.#stopRuns(runIds));
    const ofRuns: ChangeListener = {
      waiting: (accountIds) => this.#taker.wake(accountIds, true),
      left: (accountIds) => this.#taker.wakeForLeft(accountIds),
      stop,
    };
    this.#unsubscribe = this.#services.news.subscribe(this.#quarantine === null ? { stop } : ofRuns);
    await this.#logFailure(() => this.#reconcile());
  }

  /** Stops taking runs and chores, hands back the runs in progress, and leaves. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#unsubscribe();
    for (const end of this.#timers) end();
    // First, so that handed-back runs don't come back to this worker.
    const stopped = this.#chores?.stop();
    this.#stopActive("drain");
    await this.#taker.stop();
    await Promise.all([
      stopped,
      this.#quarantine?.stop(),
      ...[...this.#active.values()].map(({ over }) => over),
    ]);
    await this.#membership?.leave();
    // Other workers may have free slots for them.
    this.#services.news.notifyRunnable(this.#taker.accountIds);
    this.#chores?.close();
  }

  /** A taken run, which is already leased to this worker. */
  #begin(run: ClaimedRun, workerId: string): void {
    if (this.#quarantine === null)
      this.#services.log.warn(
        { runId: run.id },
        "a run that has lost its workers without getting further is executed in quarantine",
      );
    this.#services.log.info(
      {
        runId: run.id,
        accountId: run.accountId,
        blueprintId: run.blueprintId,
        version: run.blueprintVersion,
        execution: run.epoch,
      },
      "run taken",
    );
    const beganMs = this.#services.clock.now();
    this.#pace.note(beganMs);
    const stop = new AbortController();
    const over = executeRun(this.#services, run, workerId, stop)
      .catch(async (error: unknown) => await this.#giveBack(run, workerId, error))
      .then((outcome) => this.#follow(run.id, outcome, beganMs));
    this.#active.set(run.id, { accountId: run.accountId, stop, over });
    if (this.#stopping) stop.abort(new RunStopped("drain"));
    else if (this.#membership?.workerId !== workerId) stop.abort(new RunStopped("lease_lost"));
  }

  /** An unexpected error, such as an end that the database rejects: the run is retried after a delay. */
  async #giveBack(run: ClaimedRun, workerId: string, error: unknown): Promise<RunOutcome> {
    this.#services.log.error({ runId: run.id, ...describeError(error) }, "a run could not be executed");
    const lease = { runId: run.id, owner: workerId, epoch: run.epoch };
    // Otherwise it stays leased until the reconciler finds that no worker has it.
    return await delayRun(this.#services, run, lease).catch((): RunOutcome => ({ kind: "connection_lost" }));
  }

  /** After a run has ended: a waiting run may begin. */
  #follow(runId: string, outcome: RunOutcome, beganMs: number): void {
    this.#active.delete(runId);
    const ms = Math.round(this.#services.clock.now() - beganMs);
    this.#services.log.info({ runId, outcome: outcome.kind, ms }, "run executed");
    metrics.runExecutions.add({ outcome: outcome.kind });
    if (outcome.kind === "released") this.#services.news.notifyLeft([outcome.accountId]);
    if (outcome.kind === "delayed") this.#taker.wakeForLeftIn(outcome.delayMs, outcome.accountId);
    if (outcome.kind === "ended" || outcome.kind === "parked") this.#taker.freed(outcome.accountId);
    else this.#taker.wake([]);
  }

  #stopActive(reason: "drain" | "lease_lost"): void {
    for (const { stop } of this.#active.values()) stop.abort(new RunStopped(reason));
  }

  #countByAccount(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { accountId } of this.#active.values())
      counts.set(accountId, (counts.get(accountId) ?? 0) + 1);
    return counts;
  }

  async #join(): Promise<void> {
    const parts = { ...this.#services, openSession: this.#openSession };
    this.#membership = await join(parts, this.#chores?.poolIds ?? [], {
      onLost: () => {
        this.#membership = null;
        // docs/decisions/0005: a worker that loses its liveness stops its runs before it joins again.
        this.#stopActive("lease_lost");
        void this.#rejoin();
      },
      onInterrupted: () => this.#peers.disturb(this.#services.clock.now()),
    });
    // It was stopped while it joined again: nothing else would make it leave.
    if (this.#stopping) await this.#membership.leave();
  }

  async #rejoin(): Promise<void> {
    while (!this.#stopping && this.#membership === null) {
      await this.#services.clock.sleep(REJOIN_EVERY_MS);
      if (this.#active.size === 0 && !this.#stopping) await this.#logFailure(() => this.#join());
    }
  }

  async #takeOver(): Promise<void> {
    const workerId = this.#membership?.workerId;
    if (workerId === undefined) return;
    const dead = await this.#findDead(workerId);
    if (dead.length === 0) return;
    const accountIds = await takeOverDeadWorkers(this.#services.db, dead);
    if (accountIds.length === 0) return;
    metrics.takenOver.add({}, accountIds.length);
    this.#services.log.warn({ runs: accountIds.length }, "took over the runs of a dead worker");
    await failpoint("worker.after_take_over");
    this.#services.news.notifyLeft([...new Set(accountIds)]);
  }

  async #findDead(workerId: string): Promise<readonly SeenWorker[]> {
    const askedAtMs = this.#services.clock.now();
    try {
      const seen = await listWorkers(this.#services.db);
      return this.#peers.judge(workerId, seen, { askedAtMs, nowMs: this.#services.clock.now() });
    } catch (error) {
      this.#peers.disturb(this.#services.clock.now());
      throw error;
    }
  }

  async #watch(): Promise<void> {
    await this.#stopRuns([...this.#active.keys()]);
  }

  /** Stops those of these runs that this worker executes and that must not continue. */
  async #stopRuns(runIds: readonly string[]): Promise<void> {
    const workerId = this.#membership?.workerId;
    const active = runIds.filter((id) => this.#active.has(id));
    if (workerId === undefined || active.length === 0) return;
    for (const { runId, reason } of await listRunsToStop(this.#services.db, workerId, active)) {
      // A run that is just ending no longer has a lease, and one that was taken over notices it at its next write.
      if (reason !== "lease_lost") this.#active.get(runId)?.stop.abort(new RunStopped(reason));
    }
  }

  async #reconcile(): Promise<void> {
    const { db } = this.#services;
    const workerId = this.#membership?.workerId;
    if (workerId === undefined) return;
    // Runs being taken are leased before they are executed.
    await this.#taker.between(async () => {
      const leases = await listLeases(db, workerId);
      const orphans = leases.filter(({ runId }) => !this.#active.has(runId));
      await releaseOrphans(db, workerId, orphans);
    });
    if (this.#quarantine !== null) await this.#freeOthers();
    const accounts = await listAccountsToServe(db);
    const isSuspectLeft = accounts.some(({ isSuspect }) => isSuspect);
    const wanted = accounts.filter((account) =>
      this.#quarantine === null ? account.isSuspect : account.isLeft,
    );
    this.#taker.wakeForLeft(wanted.map(({ accountId }) => accountId));
    if (this.#quarantine === null) return this.#lookIdle(isSuspectLeft);
    this.#taker.wake(accounts.flatMap(({ accountId, waits }) => (waits ? [accountId] : [])));
    this.#quarantine.look(isSuspectLeft, () => void this.#logFailure(() => this.#takeOver()));
  }

  /** Frees the runs and chores of lost workers. */
  async #freeOthers(): Promise<void> {
    const { db } = this.#services;
    await freeOrphanedRuns(db);
    await this.#chores?.freeLeft();
    await callOverdueQueued(db);
  }

  /** Runs that waited for a time: it is there. */
  async #wake(passTimes: (db: EngineServices["db"]) => Promise<readonly string[]>): Promise<void> {
    const accountIds = await passTimes(this.#services.db);
    if (accountIds.length > 0) this.#services.news.notifyRunnable(accountIds);
  }

  /** Calls runs that queue for a browser, while there are free places for them. */
  async #callToBrowsers(): Promise<void> {
    const { browsers, db, news } = this.#services;
    const workerId = this.#membership?.workerId;
    if (workerId === undefined || this.#stopping) return;
    const { most, free } = await browsers.places();
    this.#hasBrowser = most > 0;
    const said = `${workerId} ${most}`;
    if (said !== this.#saidBrowsers) await saveBrowsers(db, workerId, { most, network: browsers.network });
    this.#saidBrowsers = said;
    if (free === 0) return;
    const accountIds = await callToBrowsers(db, free);
    if (accountIds.length > 0) news.notifyRunnable(accountIds);
  }

  #lookIdle(isWanted: boolean): void {
    this.#idleLooks = isWanted || this.#active.size > 0 ? 0 : this.#idleLooks + 1;
    if (this.#idleLooks >= IDLE_LOOKS_MAX) this.#idle.resolve();
  }

  async #logFailure(task: () => Promise<unknown>): Promise<void> {
    await logFailure(this.#services.log, task);
  }

  #every(ms: number, task: () => Promise<void>): void {
    let inProgress = false;
    this.#timers.push(
      this.#services.clock.every(ms, () => {
        if (inProgress || this.#stopping) return;
        inProgress = true;
        void this.#logFailure(task).finally(() => {
          inProgress = false;
        });
      }),
    );
  }
}
