/** Half of the threads that files and name look-ups of this process need as well (docs/decisions/0022). */
const AT_ONCE = 2;
/** Who waits at most: those who are known; of one network of strangers, and of all. */
const WAITING_MAX = { known: 50, network: 4, strangers: 100 } as const;

/** Too many wait already: the caller is told to come again. */
export class PasswordsBusy extends Error {
  override readonly name = "PasswordsBusy";

  constructor() {
    super("too many passwords are being checked");
  }
}

/** Whose turn it is when there are more than can be checked: who is known comes first, and networks of strangers take turns. */
export type PasswordTurn = "known" | { readonly network: string };

type Waiter = PromiseWithResolvers<void>;

/** A line for the places of a process. */
export class PasswordTurns {
  readonly #known: Waiter[] = [];
  /** In the order of the next turns. */
  readonly #strangers = new Map<string, Waiter[]>();
  #strangersWaiting = 0;
  #running = 0;

  /** A caller that asks now must wait. */
  get isBusy(): boolean {
    return this.#running >= AT_ONCE;
  }

  /** Works when it is this one's turn. Throws PasswordsBusy. */
  async take<T>(turn: PasswordTurn, work: () => Promise<T>): Promise<T> {
    if (this.isBusy) await this.#wait(turn);
    else this.#running++;
    try {
      return await work();
    } finally {
      // The place is handed on, so that nobody overtakes who waits.
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

  /** Who comes from a network that has none waiting takes the place of the last one of a network with several. */
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
