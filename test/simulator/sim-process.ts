import { AsyncLocalStorage } from "node:async_hooks";
import type { Clock } from "#lib/clock.ts";
import type { World } from "./world.ts";

/** What goes out of a process and what comes back: how long each way takes, and what gets lost. */
export interface Network {
  /** One way to the database, in milliseconds. `call`: whose, and what. */
  latencyMs(call: string): number;
  /** What becomes of a call. `request_lost`: it is not done. `answer_lost`: it is done, and nobody hears of it. */
  fate(call: string): "arrives" | "request_lost" | "answer_lost";
}

/**
 * Polls of workers that have nothing to do are most of what would happen, so they come less often: as on a machine that is busy. What
 * must come in time, such as heartbeats, is not stretched.
 */
const stretchOf = (ms: number): number => (ms <= 1_000 ? 4 : ms <= 2_000 ? 2 : 1);

/** Which process what runs now belongs to. */
const current = new AsyncLocalStorage<SimProcess>();
export const currentProcess = (): SimProcess | undefined => current.getStore();

/**
 * A process of the product, which this one carries beside others. It can be paused, as a machine that is suspended or swaps: nothing of it
 * goes on, what has left it arrives, and what comes waits. It can crash: what comes then comes to nobody.
 */
export class SimProcess {
  readonly name: string;
  readonly world: World;
  readonly network: Network;
  readonly #waiting: (() => void)[] = [];
  readonly #atCrash: (() => void)[] = [];
  readonly #onCut: (() => void)[] = [];
  #state: "up" | "paused" | "crashed" = "up";
  #disturbedAtMs = 0;

  constructor(name: string, world: World, network: Network) {
    this.name = name;
    this.world = world;
    this.network = network;
    this.#disturbedAtMs = world.nowMs;
  }

  get isUp(): boolean {
    return this.#state === "up";
  }

  get isCrashed(): boolean {
    return this.#state === "crashed";
  }

  /** When it last began, stood still or lost its connections. */
  get disturbedAtMs(): number {
    return this.#disturbedAtMs;
  }

  run<T>(act: () => T): T {
    return current.run(this, act);
  }

  /** What happens in this process after `ms`: later when it is paused then, never when it has crashed. */
  after(ms: number, label: string, act: () => void): () => void {
    let isOff = false;
    const callOff = this.world.after(ms, `${this.name} ${label}`, () => {
      if (this.#state === "crashed") return;
      if (this.#state === "up") return this.run(act);
      this.#waiting.push(() => {
        if (!isOff) act();
      });
    });
    return () => {
      isOff = true;
      callOff();
    };
  }

  pause(): void {
    if (this.#state === "up") this.#state = "paused";
  }

  /** Resolves when it is up again; never when it has crashed. */
  async untilUp(): Promise<void> {
    await new Promise<void>((resolve) => this.after(0.01, "goes on at a point", resolve));
  }

  /** All that came meanwhile happens one after the other, by chance in this order or the other way round. */
  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "up";
    this.#disturbedAtMs = this.world.nowMs;
    const waiting = this.#waiting.splice(0);
    // Timers of a process that wakes up run before what the network has brought.
    let ms = 0;
    for (const act of waiting) {
      ms += this.world.random.between(0.01, 0.2);
      this.after(ms, "wakes up", act);
    }
  }

  crash(): void {
    this.#state = "crashed";
    for (const act of this.#atCrash.splice(0)) act();
  }

  /** What the rest of the world sees of a crash: connections that end. */
  atCrash(act: () => void): void {
    this.#atCrash.push(act);
  }

  /** Its connections to the database break, and it goes on. */
  cut(): void {
    this.#disturbedAtMs = this.world.nowMs;
    if (!this.isCrashed) for (const act of this.#onCut) act();
  }

  onCut(act: () => void): void {
    this.#onCut.push(act);
  }

  /** Time as this process measures it. */
  readonly clock: Clock = {
    now: () => this.world.nowMs,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const callOff = this.after(ms, "slept", resolve);
      const abort = (): void => {
        callOff();
        // As the timers of Node do: the reason is in the signal alone.
        reject(
          Object.assign(new Error("The operation was aborted"), { name: "AbortError", code: "ABORT_ERR" }),
        );
      };
      signal?.addEventListener("abort", abort, { once: true });
      try {
        await promise;
      } finally {
        signal?.removeEventListener("abort", abort);
      }
    },
    after: (ms, task) => this.after(ms, "timer", task),
    every: (ms, task) => {
      let callOff = (): void => {};
      let isOver = false;
      const next = (): void => {
        callOff = this.after(ms * stretchOf(ms), `every ${ms}`, () => {
          if (isOver) return;
          next();
          task();
        });
      };
      next();
      return () => {
        isOver = true;
        callOff();
      };
    },
    timeout: (ms) => {
      const limit = new AbortController();
      this.after(ms, "time-out", () =>
        limit.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError")),
      );
      return limit.signal;
    },
  };
}
