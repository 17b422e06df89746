import { BrowserError } from "./browser-error.ts";

/** How long a place may be waited for, and what ends the wait. */
export interface PlaceRequest {
  readonly signal: AbortSignal;
  /** Called with the wait for a place, if there is none. */
  readonly whileWaiting?: ((wait: () => Promise<void>) => Promise<void>) | undefined;
  /** After this time the wait ends with `no_place`; undefined: it lasts as long as it takes. */
  readonly withinMs?: number | undefined;
}

/** Places that are taken in the order of asking. */
export class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];
  /** Called when a place is free and nobody here waits for it. */
  onFreed = (): void => {};

  constructor(count: number) {
    this.#free = count;
  }

  get free(): number {
    return this.#free;
  }

  /** Resolves with the function that gives the place back, which may be called more than once. */
  async enter({ signal, whileWaiting, withinMs }: PlaceRequest): Promise<() => void> {
    if (signal.aborted) throw new BrowserError("cancelled", "the run was stopped");
    const wait = async (): Promise<void> => await this.#wait(signal, withinMs);
    if (this.#free > 0) this.#free--;
    else await (whileWaiting === undefined ? wait() : whileWaiting(wait));
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const next = this.#waiting.shift();
      if (next !== undefined) return next();
      this.#free++;
      this.onFreed();
    };
  }

  async #wait(signal: AbortSignal, withinMs: number | undefined): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const giveUp = (reason: BrowserError): void => {
      const at = this.#waiting.indexOf(turn.resolve);
      if (at >= 0) this.#waiting.splice(at, 1);
      turn.reject(reason);
    };
    const stop = (): void =>
      giveUp(new BrowserError("cancelled", "the run was stopped while it waited for a browser"));
    const timer =
      withinMs === undefined
        ? undefined
        : setTimeout(
            () => giveUp(new BrowserError("no_place", "other runs have all browsers of this worker")),
            withinMs,
          );
    this.#waiting.push(turn.resolve);
    signal.addEventListener("abort", stop, { once: true });
    try {
      await turn.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }
}
