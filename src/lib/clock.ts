import { setTimeout as sleep } from "node:timers/promises";

/**
 * A process's monotonic clock, for waits, deadlines and measurements. It says nothing about the date: business time is the
 * database's app_now(). Passed as a parameter, so that a simulation can move it.
 */
export interface Clock {
  /** Milliseconds since an arbitrary moment. */
  now(): number;
  /** Resolves after `ms`. Rejects when the signal aborts, as Node's timers do. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls the task once, after `ms`. Returns a function that cancels it. */
  after(ms: number, task: () => void): () => void;
  /** Calls the task every `ms`. Returns a function that stops it. */
  every(ms: number, task: () => void): () => void;
  /** A signal that aborts with a TimeoutError after `ms`. It doesn't keep the process alive. */
  timeout(ms: number): AbortSignal;
}

/** The machine's clock. */
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
