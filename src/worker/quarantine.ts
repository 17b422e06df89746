import { fork, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { DatabaseSource } from "#db/connection/pool.ts";
import type { Log } from "#lib/log.ts";

/** The same program without servers and chores: src/service/quarantined.ts. */
const PROGRAM = fileURLToPath(new URL("../quarantined.mjs", import.meta.url));
/** Maximum number of processes. A run that hangs in one delays the others only if all processes hang. */
const PROCESSES_MAX = 3;
/** The pause after a process that died. */
const START_AGAIN_MS = 2_000;
/** Polls, two seconds apart, of a silent process before it is killed: its event loop hangs, or it never started. */
const SILENT_LOOKS_MAX = { started: 10, starting: 60 };
/** How long a process may take to hand its run back when the worker stops. */
const STOP_MS = 10_000;

/** The first message to a quarantined process. It is sent over the private channel, because it has keys. */
export interface QuarantineOrder {
  /** The service's settings. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly source: DatabaseSource;
}

/** Its status message, sent each second. */
export interface QuarantineState {
  readonly isFree: boolean;
}

interface Quarantined {
  readonly child: ChildProcess;
  isFree: boolean;
  silentLooksLeft: number;
}

export interface QuarantineOptions {
  readonly order: QuarantineOrder;
  readonly log: Log;
}

/**
 * Executes quarantined runs: those that repeatedly lost their workers without progress. Each gets a separate process with one
 * slot, which is a worker like any other (a row, a lock, a heartbeat, the same fence) and takes only quarantined runs, by the
 * same path as every run. If it dies, its run is the cause, and nothing else is lost. When the parent worker's process ends, it
 * hands its run back.
 */
export class Quarantine {
  readonly #options: QuarantineOptions;
  readonly #processes = new Set<Quarantined>();
  #isStopped = false;
  #notBeforeMs = -Infinity;

  constructor(options: QuarantineOptions) {
    this.#options = options;
  }

  /** One poll: starts processes if quarantined runs wait. `onDeath` is called when a process started here dies. */
  look(isWaiting: boolean, onDeath: () => void): void {
    for (const quarantined of this.#processes) {
      if (--quarantined.silentLooksLeft > 0) continue;
      this.#options.log.error("a quarantine process is not responding and will be ended");
      quarantined.child.kill("SIGKILL");
    }
    const isAnyFree = [...this.#processes].some(({ isFree }) => isFree);
    if (!isWaiting || isAnyFree || this.#isStopped || this.#processes.size >= PROCESSES_MAX) return;
    if (performance.now() >= this.#notBeforeMs) this.#start(onDeath);
  }

  /** Makes every process hand back its run and end. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(
      [...this.#processes].map(async ({ child }) => {
        const isOver = new Promise<void>((resolve) => child.once("exit", () => resolve()));
        if (child.connected) child.disconnect();
        await Promise.race([isOver, sleep(STOP_MS, undefined, { ref: false })]);
        child.kill("SIGKILL");
      }),
    );
  }

  #start(onDeath: () => void): void {
    const { log, order } = this.#options;
    const child = fork(PROGRAM, [], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    // Until its first status: it is expected to take a waiting run.
    const quarantined: Quarantined = { child, isFree: true, silentLooksLeft: SILENT_LOOKS_MAX.starting };
    this.#processes.add(quarantined);
    log.info({ pid: child.pid }, "a quarantine process was started");
    child.on("message", ({ isFree }: QuarantineState) => {
      quarantined.isFree = isFree;
      quarantined.silentLooksLeft = SILENT_LOOKS_MAX.started;
    });
    const onEnd = (code: number | null, signal: string | null): void => {
      if (!this.#processes.delete(quarantined) || code === 0 || this.#isStopped) return;
      log.error({ pid: child.pid, code, signal }, "a process in quarantine died");
      this.#notBeforeMs = performance.now() + START_AGAIN_MS;
      onDeath();
    };
    child.once("exit", onEnd);
    // It could not be started, or did not receive the message.
    child.on("error", () => onEnd(null, null));
    child.send(order, () => {});
  }
}
