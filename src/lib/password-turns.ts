/** Half of the threads that files and name look-ups of this process need as well (docs/decisions/0022). */
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
  /** In the order of the next turns. */
  readonly #strangers = new Map<string, Waiter[]>();
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
    const line = this.#strangers.get(network) ?? [];
    if (line.length >= WAITING_MAX.network) throw new PasswordsBusy();
    if (this.#strangersWaiting >= WAITING_MAX.strangers && !(line.length === 0 && this.#shortenLongest()))
      throw new PasswordsBusy();
    line.push(waiter);
    this.#strangersWaiting++;
    this.#strangers.set(network, line);
  }

  /** A caller from a network without waiting callers replaces the last one of a network with several. */
  #shortenLongest(): boolean {
    let longest: Waiter[] = [];
    for (const line of this.#strangers.values()) if (line.length > longest.length) longest = line;
    if (longest.length < 2) return false;
    longest.pop()?.reject(new PasswordsBusy());
    this.#strangersWaiting--;
    return true;
  }

  #nextStranger(): Waiter | undefined {
    const [next] = this.#strangers;
    if (next === undefined) return undefined;
    const [network, line] = next;
    const waiter = line.shift();
    this.#strangersWaiting--;
    this.#strangers.delete(network);
    if (line.length > 0) this.#strangers.set(network, line);
    return waiter;
  }
}
