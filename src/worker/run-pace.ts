const SECOND_MS = 1_000;
/** With few slots many runs a second are not much work. */
const BUSY_RUNS_MIN = 200;

/**
 * Whether a worker's runs have no processor to spare: within a second it begins more of them than it has slots, and at least 200. With all slots taken
 * by runs that wait for their targets it is not busy.
 */
export class RunPace {
  /** Runs begun in a second. */
  readonly #busyAbove: number;
  #fromMs = -Infinity;
  #begun = 0;
  /** Of the second before. */
  #wasBusy = false;

  constructor(slots: number) {
    this.#busyAbove = Math.max(slots, BUSY_RUNS_MIN);
  }

  /** A run begins. */
  note(nowMs: number): void {
    this.#pass(nowMs);
    this.#begun++;
  }

  isBusy(nowMs: number): boolean {
    this.#pass(nowMs);
    return this.#wasBusy || this.#begun > this.#busyAbove;
  }

  #pass(nowMs: number): void {
    const passedMs = nowMs - this.#fromMs;
    if (passedMs < SECOND_MS) return;
    this.#wasBusy = passedMs < 2 * SECOND_MS && this.#begun > this.#busyAbove;
    this.#fromMs = nowMs - (Number.isFinite(passedMs) ? passedMs % SECOND_MS : 0);
    this.#begun = 0;
  }
}
