import type { Lease } from "#db/runs/lease.ts";
import { limits } from "#domain/limits.ts";
import type { Clock } from "#lib/clock.ts";
import { RunStopped } from "./run-ended.ts";

/**
 * Whether others may hold this worker for dead. They go by the heartbeats in the database; a worker that stood still (suspended,
 * swapped, frozen) is the last to hear of it. So it goes by its own monotonic clock, and by the moment at which it *sent* its last
 * heartbeat that was written down: what must not be done twice is not begun when that is too long ago.
 *
 * What remains is a pause of the process after the check, within the kernel's own call, and a clock that stands still with a
 * virtual machine.
 */
export class SelfFence {
  readonly #clock: Clock;
  #workerId: string | null = null;
  #sentAtMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A heartbeat that was sent then (by the clock) is in the database. */
  heard(workerId: string, sentAtMs: number): void {
    this.#workerId = workerId;
    this.#sentAtMs = sentAtMs;
  }

  /** Throws RunStopped `lease_lost` when another worker may carry the run by now, and goes on with it. */
  check({ owner }: Lease): void {
    const isFresh = this.#clock.now() - this.#sentAtMs < limits.selfFenceMs;
    if (owner !== this.#workerId || !isFresh) throw new RunStopped("lease_lost");
  }
}
