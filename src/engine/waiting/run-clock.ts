import { limits } from "#domain/limits.ts";
import type { Clock } from "#lib/clock.ts";

/** A run's timeout in this process. It is paused while the run waits for others. */
export class RunClock {
  readonly #clock: Clock;
  readonly #onOver: () => void;
  #leftMs: number;
  #runningSinceMs = 0;
  #waits = 0;
  #callOff = (): void => {};

  constructor(clock: Clock, remainingMs: number, onOver: () => void) {
    this.#clock = clock;
    this.#leftMs = Math.max(remainingMs, 0);
    this.#onOver = onOver;
    this.#continueSession();
  }

  /** The remaining timeout, in milliseconds. */
  get leftMs(): number {
    return this.#waits > 0 ? this.#leftMs : this.#leftMs - (this.#clock.now() - this.#runningSinceMs);
  }

  async standStill<T>(wait: () => Promise<T>): Promise<T> {
    if (this.#waits++ === 0) {
      this.#leftMs -= this.#clock.now() - this.#runningSinceMs;
      this.#callOff();
    }
    try {
      return await wait();
    } finally {
      if (--this.#waits === 0) this.#continueSession();
    }
  }

  end(): void {
    this.#callOff();
    this.#waits = Number.POSITIVE_INFINITY;
  }

  #continueSession(): void {
    this.#runningSinceMs = this.#clock.now();
    this.#callOff = this.#clock.after(Math.min(Math.max(this.#leftMs, 0), limits.timerMsMax), this.#onOver);
  }
}
