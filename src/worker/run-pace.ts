const SECOND_MS = 1_000;
/** With few slots many runs a second are not much work. */
const BUSY_RUNS_MIN = 200;

/** Events that have been due for longer have a share of a worker whose runs leave no time for them. */
const BEHIND_MS = 10_000;
/** Of the main thread's time: with less, it is the endpoint that takes its time. */
const FULL_LOOP = 0.8;
const GIVE_WAY = 0.7;
const TAKE_BACK = 1.2;
/** What runs keep in any case. */
const PART_MIN = 0.25;

/**
 * How a worker's time is shared between its runs and its deliveries to webhook endpoints. Runs go first: while they have no processor to spare, which is
 * when more of them begin within a second than it has slots, and at least 200, events are left for a moment. With all slots taken by runs that wait for their
 * targets it is not busy. Events that are far behind because the worker has no time take slots from runs, step by step, until they have caught up.
 */
export class RunPace {
  readonly #slots: number;
  /** Runs begun in a second. */
  readonly #busyAbove: number;
  #fromMs = -Infinity;
  #begun = 0;
  /** Of the second before. */
  #wasBusy = false;
  /** Of the slots. */
  #part = 1;

  constructor(slots: number) {
    this.#slots = slots;
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

  /** How many runs it executes at a time. */
  get slots(): number {
    return Math.max(1, Math.floor(this.#slots * this.#part));
  }

  /** Once a second. `behindMs`: for how long the oldest event has been due that it delivers; `loopShare`: how much of the second its main thread was busy. */
  share(behindMs: number, loopShare: number): void {
    const mustGiveWay = behindMs > BEHIND_MS && loopShare >= FULL_LOOP;
    this.#part = Math.min(Math.max(this.#part * (mustGiveWay ? GIVE_WAY : TAKE_BACK), PART_MIN), 1);
  }

  #pass(nowMs: number): void {
    const passedMs = nowMs - this.#fromMs;
    if (passedMs < SECOND_MS) return;
    this.#wasBusy = passedMs < 2 * SECOND_MS && this.#begun > this.#busyAbove;
    this.#fromMs = nowMs - (Number.isFinite(passedMs) ? passedMs % SECOND_MS : 0);
    this.#begun = 0;
  }
}
