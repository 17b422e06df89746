import { setTimeout as sleep } from "node:timers/promises";
import { limits } from "#domain/limits.ts";

/** Ends a turn. `isOver`: it has logged in, or has tried to. */
export type EndTurn = (isOver: boolean) => void;

interface Waiter {
  hasTurn: boolean;
  readonly wake: () => void;
}

interface Turns {
  readonly waiters: Waiter[];
  /** When the last login came to its end. */
  movedAtMs: number;
}

/**
 * Runs of this process that want to log in with the same credential, one after the other in the order in which they came. The first
 * alone asks the database; a quick login is followed by the next one at once, without asking again and again.
 */
export class LoginTurns {
  readonly #turns = new Map<string, Turns>();

  /**
   * Waits as long as the logins before it come to an end, one after the other, without a pause longer than `patienceMs`. Undefined: a
   * login takes longer than that. Throws an AbortError when `signal` aborts.
   */
  async take(credentialId: string, patienceMs: number, signal: AbortSignal): Promise<EndTurn | undefined> {
    const end: EndTurn = (isOver) => this.#pass(credentialId, isOver);
    const turns = this.#turns.get(credentialId);
    if (turns === undefined) {
      this.#turns.set(credentialId, { waiters: [], movedAtMs: performance.now() });
      return end;
    }
    const { promise: woken, resolve } = Promise.withResolvers<void>();
    const waiter: Waiter = { hasTurn: false, wake: resolve };
    turns.waiters.push(waiter);
    try {
      for (;;) {
        if (waiter.hasTurn) return end;
        const leftMs = turns.movedAtMs + patienceMs - performance.now();
        if (leftMs <= 0) return undefined;
        await wokenWithin(woken, Math.min(leftMs, limits.timerMsMax), signal);
      }
    } catch (error) {
      if (waiter.hasTurn) end(false);
      throw error;
    } finally {
      const place = turns.waiters.indexOf(waiter);
      if (place >= 0) turns.waiters.splice(place, 1);
    }
  }

  #pass(credentialId: string, isOver: boolean): void {
    const turns = this.#turns.get(credentialId);
    if (turns === undefined) return;
    if (isOver) turns.movedAtMs = performance.now();
    const next = turns.waiters.shift();
    if (next === undefined) {
      this.#turns.delete(credentialId);
      return;
    }
    next.hasTurn = true;
    next.wake();
  }
}

/** Leaves no timer behind: with no end to its patience it would last for weeks. */
async function wokenWithin(woken: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const timer = sleep(ms, undefined, { signal: AbortSignal.any([signal, over.signal]), ref: false });
  try {
    await Promise.race([woken, timer]);
  } finally {
    over.abort();
  }
}
