import { limits } from "#domain/limits.ts";

/** A run's timeout, in this process: it stands still while the run waits for others to let it go on. */
export class RunClock {
  readonly #onOver: () => void;
  #leftMs: number;
  #runningSinceMs = 0;
  #waits = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(remainingMs: number, onOver: () => void) {
    this.#leftMs = Math.max(remainingMs, 0);
    this.#onOver = onOver;
    this.#goOn();
  }

  /** What is left of the timeout, in milliseconds. */
  get leftMs(): number {
    return this.#waits > 0 ? this.#leftMs : this.#leftMs - (performance.now() - this.#runningSinceMs);
  }

  async standStill<T>(wait: () => Promise<T>): Promise<T> {
    if (this.#waits++ === 0) {
      this.#leftMs -= performance.now() - this.#runningSinceMs;
      clearTimeout(this.#timer);
    }
    try {
      return await wait();
    } finally {
      if (--this.#waits === 0) this.#goOn();
    }
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#waits = Number.POSITIVE_INFINITY;
  }

  #goOn(): void {
    this.#runningSinceMs = performance.now();
    this.#timer = setTimeout(this.#onOver, Math.min(Math.max(this.#leftMs, 0), limits.timerMsMax));
  }
}
