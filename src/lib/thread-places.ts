import { must } from "./assert.ts";

/** Concurrent threads for short or new jobs, and for long ones. */
const PLACES = { quick: 2, slow: 2 } as const;

type Lane = keyof typeof PLACES;

/** A job's slot, which must be returned whatever the outcome. */
export interface PlaceHeld {
  readonly lane: Lane;
  /** Marks the job as long. True: it continues in a slot for long jobs. False: none is free, and it must start again later. */
  becomeSlow(): boolean;
  release(): void;
}

interface Waiting {
  readonly lane: Lane;
  /** The job's owner. */
  readonly owner: object;
  readonly start: (place: PlaceHeld) => void;
}

/**
 * Schedules the threads that parse targets' data. Long jobs don't prevent others from starting, and an owner's long jobs run one at a
 * time: otherwise a few hostile pages would block everyone. docs/decisions/0016.
 */
export class ThreadPlaces {
  readonly #taken: Record<Lane, number> = { quick: 0, slow: 0 };
  readonly #owners = new Set<object>();
  readonly #waiting: Waiting[] = [];

  /** Waits for a slot. Rejects with the signal's reason if that aborts first. */
  async take(lane: Lane, owner: object, signal: AbortSignal): Promise<PlaceHeld> {
    const { promise, resolve, reject } = Promise.withResolvers<PlaceHeld>();
    const waiting: Waiting = { lane, owner, start: resolve };
    const onAbort = (): void => {
      const index = this.#waiting.indexOf(waiting);
      if (index >= 0) this.#waiting.splice(index, 1);
      reject(signal.reason instanceof Error ? signal.reason : new Error("The run was stopped."));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(waiting);
    this.#startWaiting();
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #startWaiting(): void {
    for (;;) {
      const index = this.#waiting.findIndex(
        ({ lane, owner }) => this.#taken[lane] < PLACES[lane] && !this.#owners.has(owner),
      );
      if (index < 0) return;
      const next = must(this.#waiting.splice(index, 1)[0], "the next waiting job");
      next.start(this.#give(next));
    }
  }

  #give({ lane: first, owner }: Waiting): PlaceHeld {
    let lane = first;
    let isHeld = true;
    this.#taken[lane]++;
    this.#owners.add(owner);
    return {
      get lane() {
        return lane;
      },
      becomeSlow: () => {
        if (!isHeld || lane === "slow") return true;
        if (this.#taken.slow >= PLACES.slow) return false;
        this.#taken.quick--;
        this.#taken.slow++;
        lane = "slow";
        this.#startWaiting();
        return true;
      },
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#taken[lane]--;
        this.#owners.delete(owner);
        this.#startWaiting();
      },
    };
  }
}
