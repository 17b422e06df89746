import { EventEmitter } from "node:events";
import { run as runGraphileWorker, Logger, type Runner, type WorkerEvents } from "graphile-worker";
import { deleteOldKeys } from "#actions/keys/delete-old-keys.ts";
import { noteExpired } from "#actions/sessions/note-expired-sessions.ts";
import { purgeOldRuns } from "#actions/runs/purge-runs.ts";
import { sweepObjects } from "#actions/upkeep/sweep-objects.ts";
import { mailOperators } from "#actions/upkeep/mail-operators.ts";
import { deliverWebhooks } from "#actions/webhooks/deliver-webhooks.ts";
import { addUpStoredBytes } from "#db/account-usage.ts";
import { isConnectionLost } from "#db/connection/database-errors.ts";
import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import {
  addDeliveryJobs,
  deleteOldEvents,
  deleteOrphanedDeliveries,
} from "#db/webhooks/webhook-deliveries.ts";
import { deleteUnwatched } from "#db/runs/live-pictures.ts";
import { freeJobs, freeOrphanedJobs, savePoolIds } from "#db/runs/workers.ts";
import { deleteOldFires } from "#db/schedules/schedule-fires.ts";
import type { EngineServices } from "#engine/services.ts";
import { describeError } from "#lib/log.ts";
import type { RunPace } from "./run-pace.ts";
import { logFailure } from "./upkeep.ts";

const POLL_EVERY_MS = 1_000;
/** Concurrent chores: handed-over sign-ins, one scheduled chore, and deliveries to webhook endpoints, which leave room for the others. */
const CHORES_AT_ONCE = 40;
const DELIVERY_JOBS_MAX = 30;
const LOOK_FOR_DUE_EVERY_MS = 1_000;
/** While runs wait for a busy worker, an event waits so long before this worker delivers it: what ends sooner has the processor for itself. */
const YIELD_MS = 2_000;
const SETTLE_LEFT_EVERY_MS = 5_000;
const LOOK_FOR_MAIL_EVERY_MS = 10_000;
const OLD_EVENTS_AT_ONCE = 1_000;
/** One queue, so that only one of them runs at a time across all workers; a late job is not added twice. */
export const TIMETABLE = ["*/10 * * * * housekeeping", "7 * * * * sweep_objects"]
  .map((entry) => `${entry} ?queue=chores&jobKey=${entry.split(" ").at(-1)}`)
  .join("\n");

/** Chores with the services of the pages that end users see. */
export interface ChoresOfEndUsers {
  /** Finishes the sign-in of an end user that a process without the vault's keys has handed over. Never throws. */
  finishSignIn(stateHash: Uint8Array): Promise<void>;
  /** Settles submitted logins that were tried and that nobody waits for. */
  settleLeftTries(): Promise<void>;
}

/** A worker's jobs in graphile-worker, besides executing runs: housekeeping, handed-over sign-ins, deliveries to webhook endpoints. */
export class Chores {
  /** The names under which jobs are locked, so that other workers can free them when this one is lost. */
  readonly poolIds: string[] = [];
  readonly #services: EngineServices;
  readonly #jobs: Database;
  readonly #ofEndUsers: ChoresOfEndUsers;
  #workerId: () => string | null = () => null;
  #pace: RunPace | null = null;
  /** By endpoint: for how long the oldest event of the last batch has been due. Only of those that are being delivered. */
  readonly #ages = new Map<string, number>();
  #runner: Runner | null = null;
  readonly #stopped = new AbortController();
  #stopLooking: () => void = () => {};
  #mustFreeJobs = false;
  #arePoolsSaved = true;

  /** `jobs`: the connections of the job runner, which listens. */
  constructor(services: EngineServices, jobs: Database, ofEndUsers: ChoresOfEndUsers) {
    this.#services = services;
    this.#jobs = jobs;
    this.#ofEndUsers = ofEndUsers;
  }

  /** `workerId`: null while the worker has lost its membership. `pace`: of its runs, with which deliveries share its time. */
  async start(workerId: () => string | null, pace: RunPace): Promise<void> {
    this.#workerId = workerId;
    this.#pace = pace;
    process.on("unhandledRejection", this.#onUnhandledRejection);
    const events = new EventEmitter() as WorkerEvents;
    events.on("pool:create", ({ workerPool }) => {
      this.poolIds.push(workerPool.id);
      this.#arePoolsSaved = false;
      void logFailure(this.#services.log, () => this.#savePools());
    });
    const logger = new Logger(() => (level, message) => {
      if (level === "error") this.#services.log.error({ from: "graphile-worker" }, message.slice(0, 300));
    });
    this.#runner = await runGraphileWorker({
      pgPool: this.#jobs.pool,
      concurrency: CHORES_AT_ONCE,
      noHandleSignals: true,
      pollInterval: POLL_EVERY_MS,
      // One poll for all slots; jobs that can't begin soon go back to other workers.
      preset: { worker: { localQueue: { size: CHORES_AT_ONCE, ttl: POLL_EVERY_MS } } },
      events,
      logger,
      crontab: TIMETABLE,
      taskList: {
        // Jobs of older releases for runs that were handed back: the reconciler finds these runs by their rows.
        execute_run: async () => {},
        housekeeping: async () => await this.#runHousekeeping(),
        sweep_objects: async () => void (await sweepObjects(this.#services)),
        finish_sign_in: async (payload) =>
          await this.#ofEndUsers.finishSignIn(
            Buffer.from((payload as { stateHash: string }).stateHash, "hex"),
          ),
        // After a failure the next look finds what is due.
        deliver_webhooks: async (payload) =>
          await logFailure(this.#services.log, async () => await this.#deliver(payload)),
      },
    });
    this.#lookForDue();
    // Its promise settles with the runner; a failure is reported, and the reconciler of another process takes over.
    this.#runner.promise.catch((error: unknown) => {
      if (!this.#stopped.signal.aborted)
        this.#services.log.error(describeError(error), "the job runner ended");
    });
  }

  async stop(): Promise<void> {
    this.#stopLooking();
    this.#stopped.abort();
    await this.#runner?.stop();
  }

  /** After `stop`, when the worker no longer uses the database. */
  close(): void {
    process.off("unhandledRejection", this.#onUnhandledRejection);
  }

  /** Frees chores whose end could not be written, and those of lost workers. */
  async freeLeft(): Promise<void> {
    const { db } = this.#services;
    if (this.#mustFreeJobs) {
      await freeJobs(db, this.poolIds);
      this.#mustFreeJobs = false;
    }
    await this.#savePools();
    await freeOrphanedJobs(db);
  }

  /**
   * The job runner does not await the recording of a job's end: if the database is unavailable at that moment, the error is
   * unhandled and would end the process. The job remains locked by the runner until it is freed. Any other unhandled error ends
   * the process.
   */
  readonly #onUnhandledRejection = (error: unknown): void => {
    if (!isConnectionLost(error)) throw error;
    this.#services.log.warn(describeError(error), "the database was lost at a job's end; its lock is freed");
    this.#mustFreeJobs = true;
  };

  async #savePools(): Promise<void> {
    const workerId = this.#workerId();
    if (workerId === null || this.#arePoolsSaved) return;
    await savePoolIds(this.#services.db, workerId, this.poolIds);
    this.#arePoolsSaved = true;
  }

  async #deliver(payload: unknown): Promise<void> {
    const { endpointId } = payload as { endpointId: string };
    try {
      await deliverWebhooks(this.#services, {
        endpointId,
        stopped: this.#stopped.signal,
        workerId: () => this.#workerId(),
        waitedMs: this.#yieldMs,
        noteAge: (ms) => void this.#ages.set(endpointId, ms),
      });
    } finally {
      this.#ages.delete(endpointId);
    }
  }

  readonly #yieldMs = (): number => (this.#pace?.isBusy(this.#services.clock.now()) ? YIELD_MS : 0);

  /** Not by the timetable, which counts minutes. */
  #lookForDue(): void {
    const { clock, db, mailer } = this.#services;
    let used = performance.eventLoopUtilization();
    const share = (): void => {
      const now = performance.eventLoopUtilization();
      this.#pace?.share(
        Math.max(0, ...this.#ages.values()),
        performance.eventLoopUtilization(now, used).utilization,
      );
      used = now;
    };
    const stops = [
      this.#every(
        LOOK_FOR_DUE_EVERY_MS,
        async () => await addDeliveryJobs(db, DELIVERY_JOBS_MAX, this.#yieldMs()),
      ),
      clock.every(LOOK_FOR_DUE_EVERY_MS, share),
      this.#every(SETTLE_LEFT_EVERY_MS, async () => await this.#ofEndUsers.settleLeftTries()),
    ];
    if (mailer !== null)
      stops.push(this.#every(LOOK_FOR_MAIL_EVERY_MS, async () => await mailOperators(this.#services)));
    this.#stopLooking = () => {
      for (const stop of stops) stop();
    };
  }

  /** Does the work every `ms`, but never twice at a time. */
  #every(ms: number, work: () => Promise<void>): () => void {
    let inProgress = false;
    return this.#services.clock.every(ms, () => {
      if (inProgress) return;
      inProgress = true;
      void logFailure(this.#services.log, work).finally(() => {
        inProgress = false;
      });
    });
  }

  /** Personal data first. A failure does not prevent the other tasks. */
  async #runHousekeeping(): Promise<void> {
    const { db, log } = this.#services;
    await logFailure(log, async () => await purgeOldRuns(this.#services));
    await logFailure(log, async () => await noteExpired(this.#services));
    await logFailure(log, async () => await deleteOldKeys(db));
    await logFailure(log, async () => await deleteUnwatched(db));
    await logFailure(log, async () => await addUpStoredBytes(db));
    await logFailure(log, async () => {
      while (
        (await deleteOldFires(db, limits.scheduleFiresKeptMs, OLD_EVENTS_AT_ONCE)) === OLD_EVENTS_AT_ONCE
      );
    });
    await logFailure(log, async () => {
      while ((await deleteOldEvents(db, limits.webhookKeptMs, OLD_EVENTS_AT_ONCE)) === OLD_EVENTS_AT_ONCE);
      await deleteOrphanedDeliveries(db);
    });
  }
}
