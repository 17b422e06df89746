import type { Lease } from "#db/runs/lease.ts";
import { limits } from "#domain/limits.ts";
import type { Clock } from "#lib/clock.ts";
import { RunStopped } from "./run-ended.ts";

/**
 * Whether other workers may consider this one dead. They judge by the heartbeats in the database; a worker that was paused (suspended,
 * swapped, frozen) learns of it last. So it uses its own monotonic clock, and the time at which it *sent* its last stored heartbeat:
 * effects that must not happen twice are not begun when that is too long ago.
 *
 * Two gaps remain: a pause of the process after the check, within the kernel's own call, and a clock that stops together with a
 * virtual machine.
 */
export class SelfFence {
  readonly #clock: Clock;
  #workerId: string | null = null;
  #sentAtMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The database has stored a heartbeat that was sent at this time (by the clock). */
  heard(workerId: string, sentAtMs: number): void {
    this.#workerId = workerId;
    this.#sentAtMs = sentAtMs;
  }

  /** Throws RunStopped `lease_lost` when another worker may have taken over the run by now. */
  check({ owner }: Lease): void {
    const isFresh = this.#clock.now() - this.#sentAtMs < limits.selfFenceMs;
    if (owner !== this.#workerId || !isFresh) throw new RunStopped("lease_lost");
  }
}
