import { limits } from "#domain/limits.ts";
import type { Clock } from "#lib/clock.ts";

/** Ends a turn. `isOver`: the run has logged in or tried to. */
export type EndTurn = (isOver: boolean) => void;

interface Waiter {
  hasTurn: boolean;
  readonly wake: () => void;
}

interface Turns {
  readonly waiters: Waiter[];
  /** When the last login ended. */
  movedAtMs: number;
}

/**
 * A FIFO queue, per credential, of this process's runs that want to log in. Only the first one polls the database; after a quick login
 * the next run follows immediately, without polling.
 */
export class LoginTurns {
  readonly #clock: Clock;
  readonly #turns = new Map<string, Turns>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Waits for the logins before it, as long as each ends within `patienceMs`. Undefined: one takes longer. Throws an AbortError when
   * `signal` aborts.
   */
  async take(credentialId: string, patienceMs: number, signal: AbortSignal): Promise<EndTurn | undefined> {
    const end: EndTurn = (isOver) => this.#pass(credentialId, isOver);
    const turns = this.#turns.get(credentialId);
    if (turns === undefined) {
      this.#turns.set(credentialId, { waiters: [], movedAtMs: this.#clock.now() });
      return end;
    }
    const { promise: woken, resolve } = Promise.withResolvers<void>();
    const waiter: Waiter = { hasTurn: false, wake: resolve };
    turns.waiters.push(waiter);
    try {
      for (;;) {
        if (waiter.hasTurn) return end;
        const leftMs = turns.movedAtMs + patienceMs - this.#clock.now();
        if (leftMs <= 0) return undefined;
        await this.#untilWoken(woken, Math.min(leftMs, limits.timerMsMax), signal);
      }
    } catch (error) {
      if (waiter.hasTurn) end(false);
      throw error;
    } finally {
      const place = turns.waiters.indexOf(waiter);
      if (place >= 0) turns.waiters.splice(place, 1);
    }
  }

  /** Leaves no timer behind, which could otherwise run for weeks. */
  async #untilWoken(woken: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const timer = this.#clock.sleep(ms, AbortSignal.any([signal, over.signal]));
    try {
      await Promise.race([woken, timer]);
    } finally {
      over.abort();
    }
  }

  #pass(credentialId: string, isOver: boolean): void {
    const turns = this.#turns.get(credentialId);
    if (turns === undefined) return;
    if (isOver) turns.movedAtMs = this.#clock.now();
    const next = turns.waiters.shift();
    if (next === undefined) {
      this.#turns.delete(credentialId);
      return;
    }
    next.hasTurn = true;
    next.wake();
  }
}
