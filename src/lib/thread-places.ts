import { must } from "./assert.ts";

/** Threads that work at once: as many for what has only begun, or is quick, as for what takes long. */
const PLACES = { quick: 2, slow: 2 } as const;

type Lane = keyof typeof PLACES;

/** A place that a job has. It is given back whatever becomes of the job. */
export interface PlaceHeld {
  readonly lane: Lane;
  /** The job takes long: true when it goes on in a place of those. False: there is none, and it must begin again when one is free. */
  becomeSlow(): boolean;
  release(): void;
}

interface Waiting {
  readonly lane: Lane;
  /** What the job is for. */
  readonly owner: object;
  readonly start: (place: PlaceHeld) => void;
}

/**
 * Who may have a thread now that reads what a target sent. A job that takes long does not keep others from beginning, and an owner that has
 * many of them has one at a time: otherwise a few hostile pages would keep everybody waiting. docs/decisions/0016.
 */
export class ThreadPlaces {
  readonly #taken: Record<Lane, number> = { quick: 0, slow: 0 };
  readonly #owners = new Set<object>();
  readonly #waiting: Waiting[] = [];

  /** Rejects with the signal's reason when it aborts before there is a place. */
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
      const next = must(this.#waiting.splice(index, 1)[0], "who waits");
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
