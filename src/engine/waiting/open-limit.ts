import type { Clock } from "#lib/clock.ts";
import { RunClock } from "./run-clock.ts";

/** A time limit of a part of a run. It stands still while the run waits for others, like the run's own. */
export interface TimeLimit {
  /** Aborted with a `TimeoutError` when the time is over. */
  readonly signal: AbortSignal;
  standStill<T>(wait: () => Promise<T>): Promise<T>;
  /** It is no longer needed. */
  end(): void;
}

export function openLimit(clock: Clock, limitMs: number): TimeLimit {
  const over = new AbortController();
  const left = new RunClock(clock, limitMs, () =>
    over.abort(new DOMException("the time is over", "TimeoutError")),
  );
  return {
    signal: over.signal,
    standStill: async (wait) => await left.standStill(wait),
    end: () => left.end(),
  };
}
