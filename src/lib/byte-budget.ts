import { FairQueue } from "./fair-queue.ts";

interface Waiting {
  readonly bytes: number;
  readonly start: () => void;
}

/**
 * A budget of bytes in use. Owners take turns, and small requests can't starve large ones. A holder must not request more: two such
 * holders would deadlock.
 */
export class ByteBudget {
  readonly #bytesMax: number;
  readonly #waiting = new FairQueue<Waiting, object>();
  #used = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Resolves, when there is room, with the release function. A request beyond the total gets all of it. Rejects with the signal's reason if
   * that aborts first.
   */
  async take(owner: object, wanted: number, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const bytes = Math.min(wanted, this.#bytesMax);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { bytes, start: resolve };
    const onAbort = (): void => {
      if (this.#waiting.remove(owner, waiting)) this.#begin();
      reject(signal.reason instanceof Error ? signal.reason : new Error("The run was stopped."));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(owner, waiting);
    this.#begin();
    await promise.finally(() => signal.removeEventListener("abort", onAbort));
    return () => {
      this.#used -= bytes;
      this.#begin();
    };
  }

  #begin(): void {
    for (;;) {
      let isFull = false;
      const next = this.#waiting.take((_owner, { bytes }) => {
        isFull ||= this.#used + bytes > this.#bytesMax;
        return !isFull;
      });
      if (next === undefined) return;
      this.#used += next.bytes;
      next.start();
    }
  }
}
