import { fork, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { DatabaseSource } from "#db/connection/pool.ts";
import type { Log } from "#lib/log.ts";

/** The same program, without its servers and chores: src/service/quarantined.ts. */
const PROGRAM = fileURLToPath(new URL("../quarantined.mjs", import.meta.url));
/** Processes at once; a suspect that hangs in one of them keeps the others waiting only when all do. */
const PROCESSES_MAX = 3;
/** After one that died. */
const START_AGAIN_MS = 2_000;
/** Looks of the worker's, two seconds apart, at a process that says nothing: its event loop stands still, or it never starts. */
const SILENT_LOOKS_MAX = { started: 10, starting: 60 };
/** How long a process may take to hand its run back when the worker stops. */
const STOP_MS = 10_000;

/** What a quarantined process is told first. It goes over the channel between the two: nobody else sees the keys in it. */
export interface QuarantineOrder {
  /** The settings, as the service was given them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly source: DatabaseSource;
}

/** What it says each second. */
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
 * Carries suspects: runs that lost their workers again and again without getting further. Each is carried in a process of its own with one
 * place, which is a worker like any other (a row, a lock, a heartbeat, the same fence) and takes suspects alone, by the same path as every
 * run. When it dies, its run is guilty, and nothing else was lost with it. When the worker's process ends, however, it hands its run back.
 */
export class Quarantine {
  readonly #options: QuarantineOptions;
  readonly #processes = new Set<Quarantined>();
  #isStopped = false;
  #notBeforeMs = -Infinity;

  constructor(options: QuarantineOptions) {
    this.#options = options;
  }

  /** A look of the worker's: whether suspects wait for a process. `onDeath` is told when one dies that is started here. */
  look(isWaiting: boolean, onDeath: () => void): void {
    for (const quarantined of this.#processes) {
      if (--quarantined.silentLooksLeft > 0) continue;
      this.#options.log.error("a process in quarantine stands still, and is ended");
      quarantined.child.kill("SIGKILL");
    }
    const isAnyFree = [...this.#processes].some(({ isFree }) => isFree);
    if (!isWaiting || isAnyFree || this.#isStopped || this.#processes.size >= PROCESSES_MAX) return;
    if (performance.now() >= this.#notBeforeMs) this.#start(onDeath);
  }

  /** Every process hands its run back and ends. */
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
    // Until it says otherwise: what waits is to be its.
    const quarantined: Quarantined = { child, isFree: true, silentLooksLeft: SILENT_LOOKS_MAX.starting };
    this.#processes.add(quarantined);
    log.info({ pid: child.pid }, "a process begins to carry suspects");
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
    // It could not be started, or not be told.
    child.on("error", () => onEnd(null, null));
    child.send(order, () => {});
  }
}
