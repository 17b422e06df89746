const ONCE = { once: true } as const;

/** The time limit of a whole exchange, combined with its caller's signal. */
export class Deadline {
  readonly #signal: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  #failure: "cancelled" | "timeout" | null = null;
  #stop: (() => void) | null = null;

  constructor(signal: AbortSignal, timeoutMs: number) {
    this.#signal = signal;
    this.#timer = setTimeout(() => this.#fail("timeout"), timeoutMs);
    if (signal.aborted) this.handleEvent();
    else signal.addEventListener("abort", this, ONCE);
  }

  /** Why the exchange must stop, or null while it may continue. */
  get failure(): "cancelled" | "timeout" | null {
    return this.#failure;
  }

  /** Calls `stop` when the exchange must stop, instead of the function of an earlier hop. */
  stopBy(stop: () => void): void {
    this.#stop = stop;
  }

  /** Must be called when the exchange has ended, because the caller's signal outlives it. */
  end(): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener("abort", this);
  }

  /** Of the caller's signal. */
  handleEvent(): void {
    this.#fail("cancelled");
  }

  #fail(why: "cancelled" | "timeout"): void {
    if (this.#failure !== null) return;
    this.#failure = why;
    this.#stop?.();
  }
}
