import { setTimeout as sleep } from "node:timers/promises";

/**
 * Time as this process measures it: for waits, deadlines and how long something took. It never steps, and says nothing about the date;
 * business time is the database's app_now(). Handed in, so that a simulation can move it.
 */
export interface Clock {
  /** Milliseconds since some moment. */
  now(): number;
  /** Resolves after `ms`; rejects with what aborts the signal, as the timers of Node do. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls the task once, after `ms`. Gives the way to call it off. */
  after(ms: number, task: () => void): () => void;
  /** Calls the task each `ms`. Gives the way to end it. */
  every(ms: number, task: () => void): () => void;
  /** A signal that aborts with a TimeoutError after `ms`. It keeps no process from ending. */
  timeout(ms: number): AbortSignal;
}

/** That of the machine. */
export const systemClock: Clock = {
  now: () => performance.now(),
  sleep: async (ms, signal) => await sleep(ms, undefined, signal && { signal }),
  after: (ms, task) => {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
  every: (ms, task) => {
    const timer = setInterval(task, ms);
    return () => clearInterval(timer);
  },
  timeout: (ms) => AbortSignal.timeout(ms),
};
