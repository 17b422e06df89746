import { FairQueue } from "./fair-queue.ts";

interface Waiting {
  readonly bytes: number;
  readonly start: () => void;
}

/**
 * Bytes that may be used at once. Owners take turns, and nobody who wants little goes before somebody who wants much forever. Who holds
 * some must not wait for more: two who did would wait for each other.
 */
export class ByteBudget {
  readonly #bytesMax: number;
  readonly #waiting = new FairQueue<Waiting, object>();
  #used = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Resolves, when there is room, with what gives it back. Who wants more than there is has all of it. Rejects with the signal's reason
   * when that aborts first.
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
