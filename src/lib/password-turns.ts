import { FairQueue } from "./fair-queue.ts";

/** Half of the thread pool, which this process also needs for files and name look-ups (docs/decisions/0022). */
const AT_ONCE = 2;
/** Queue limits: for known callers, for one network of unknown callers, and for all unknown callers. */
const WAITING_MAX = { known: 50, network: 4, strangers: 100 } as const;

/** The queue is full: the caller must retry later. */
export class PasswordsBusy extends Error {
  override readonly name = "PasswordsBusy";

  constructor() {
    super("too many passwords are being checked");
  }
}

/** Priority when more passwords wait than can be checked: known callers first; networks of unknown callers take turns. */
export type PasswordTurn = "known" | { readonly network: string };

type Waiter = PromiseWithResolvers<void>;

/** The queue for a process's slots. */
export class PasswordTurns {
  readonly #known: Waiter[] = [];
  readonly #strangers = new FairQueue<Waiter>();
  #strangersWaiting = 0;
  #running = 0;

  /** Whether a new caller would have to wait. */
  get isBusy(): boolean {
    return this.#running >= AT_ONCE;
  }

  /** Runs the work when it is its turn. Throws PasswordsBusy. */
  async take<T>(turn: PasswordTurn, work: () => Promise<T>): Promise<T> {
    if (this.isBusy) await this.#wait(turn);
    else this.#running++;
    try {
      return await work();
    } finally {
      // The slot is handed over, so that nobody overtakes the queue.
      const next = this.#known.shift() ?? this.#nextStranger();
      if (next) next.resolve();
      else this.#running--;
    }
  }

  async #wait(turn: PasswordTurn): Promise<void> {
    const waiter: Waiter = Promise.withResolvers();
    if (turn === "known") {
      if (this.#known.length >= WAITING_MAX.known) throw new PasswordsBusy();
      this.#known.push(waiter);
    } else this.#line(turn.network, waiter);
    await waiter.promise;
  }

  #line(network: string, waiter: Waiter): void {
    const own = this.#strangers.count(network);
    if (own >= WAITING_MAX.network) throw new PasswordsBusy();
    if (this.#strangersWaiting >= WAITING_MAX.strangers && !(own === 0 && this.#shortenLongest()))
      throw new PasswordsBusy();
    this.#strangers.push(network, waiter);
    this.#strangersWaiting++;
  }

  /** A caller from a network without waiting callers replaces the last one of a network with several. */
  #shortenLongest(): boolean {
    let longest = { network: "", count: 1 };
    for (const network of this.#strangers.names()) {
      const count = this.#strangers.count(network);
      if (count > longest.count) longest = { network, count };
    }
    const last = this.#strangers.takeLast(longest.network);
    last?.reject(new PasswordsBusy());
    if (last) this.#strangersWaiting--;
    return last !== undefined;
  }

  #nextStranger(): Waiter | undefined {
    const next = this.#strangers.take();
    if (next) this.#strangersWaiting--;
    return next;
  }
}
