import { EventEmitter } from "node:events";
import { run as runGraphileWorker, Logger, type Runner, type WorkerEvents } from "graphile-worker";
import { deleteOldKeys } from "#actions/keys/delete-old-keys.ts";
import { noteExpired } from "#actions/sessions/note-expired-sessions.ts";
import { purgeOldRuns } from "#actions/runs/purge-runs.ts";
import { sweepObjects } from "#actions/upkeep/sweep-objects.ts";
import { addUpStoredBytes } from "#db/account-usage.ts";
import { isConnectionLost } from "#db/connection/database-errors.ts";
import { freeJobs, freeJobsOfNobody, savePoolIds } from "#db/runs/workers.ts";
import type { EngineServices } from "#engine/services.ts";
import { describeError } from "#lib/log.ts";
import { logFailure } from "./upkeep.ts";

const POLL_EVERY_MS = 1_000;
/** Chores at once: sign-ins that are handed over, and one of the timetable's. */
const CHORES_AT_ONCE = 10;
/** One queue, so that one of them runs at a time among all workers; a job that is late is not added twice. */
export const TIMETABLE = ["*/10 * * * * housekeeping", "7 * * * * sweep_objects"]
  .map((entry) => `${entry} ?queue=chores&jobKey=${entry.split(" ").at(-1)}`)
  .join("\n");

/** What a worker does besides carrying runs, as jobs of graphile-worker: housekeeping, and sign-ins that were handed over. */
export class Chores {
  /** Names in which jobs are locked, so that others free them when this worker is lost. */
  readonly poolIds: string[] = [];
  readonly #services: EngineServices;
  readonly #finishSignIn: (stateHash: Uint8Array) => Promise<void>;
  #workerId: () => string | null = () => null;
  #runner: Runner | null = null;
  #isStopping = false;
  #mustFreeJobs = false;
  #arePoolsSaved = true;

  /** `finishSignIn`: finishes the sign-in of an end user that a process without the vault's keys has handed over. Never throws. */
  constructor(services: EngineServices, finishSignIn: (stateHash: Uint8Array) => Promise<void>) {
    this.#services = services;
    this.#finishSignIn = finishSignIn;
  }

  /** `workerId`: null while the worker has lost its membership. */
  async start(workerId: () => string | null): Promise<void> {
    this.#workerId = workerId;
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
      pgPool: this.#services.db.pool,
      concurrency: CHORES_AT_ONCE,
      noHandleSignals: true,
      pollInterval: POLL_EVERY_MS,
      // One look for all places, and what can't begin soon goes back for others.
      preset: { worker: { localQueue: { size: CHORES_AT_ONCE, ttl: POLL_EVERY_MS } } },
      events,
      logger,
      crontab: TIMETABLE,
      taskList: {
        // Messages of programs of before, that a run was left: its row says so, and the reconciler goes by that.
        execute_run: async () => {},
        housekeeping: async () => await this.#runHousekeeping(),
        sweep_objects: async () => void (await sweepObjects(this.#services)),
        finish_sign_in: async (payload) =>
          await this.#finishSignIn(Buffer.from((payload as { stateHash: string }).stateHash, "hex")),
      },
    });
    // Its promise ends with the runner; a failure there is told, and the reconciler of another process goes on.
    this.#runner.promise.catch((error: unknown) => {
      if (!this.#isStopping) this.#services.log.error(describeError(error), "the job runner ended");
    });
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#runner?.stop();
  }

  /** After `stop`, when nothing of the worker uses the database any more. */
  close(): void {
    process.off("unhandledRejection", this.#onUnhandledRejection);
  }

  /** Frees the chores whose end could not be written, and those that a lost worker has left. */
  async freeLeft(): Promise<void> {
    const { db } = this.#services;
    if (this.#mustFreeJobs) {
      await freeJobs(db, this.poolIds);
      this.#mustFreeJobs = false;
    }
    await this.#savePools();
    await freeJobsOfNobody(db);
  }

  /**
   * The job runner does not wait for the end of a job to be written: when the database is away just then, its error is nobody's
   * and would end the process. The job stays locked in the runner's name until it is freed. Any other such error ends the process.
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

  /** Personal data first. What fails keeps nothing else from being done. */
  async #runHousekeeping(): Promise<void> {
    const { db, log } = this.#services;
    await logFailure(log, async () => await purgeOldRuns(this.#services));
    await logFailure(log, async () => await noteExpired(this.#services));
    await logFailure(log, async () => await deleteOldKeys(db));
    await logFailure(log, async () => await addUpStoredBytes(db));
  }
}
