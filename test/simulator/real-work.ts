import { setImmediate as nextTurn } from "node:timers/promises";

/** Something that this process really waits for: an answer of PostgreSQL, a thread, a file. */
export interface Work {
  /** The backend of a statement that waits for a lock. */
  pid: number | null;
  /** Only a statement may stand still: until another transaction ends. */
  readonly isStatement: boolean;
  end(): void;
}

/** Backends of this database that wait for a lock of another one. */
export type ListBlocked = () => Promise<readonly number[]>;

/** Turns of the event loop without anything under way, after which nothing more comes by itself. */
const CALM_TURNS = 4;
const LOOK_AFTER_MS = 6;
const POLL_MS = 2;
/** A statement, a thread or a file that takes longer than this is a defect of the simulator. */
const STUCK_MS = 30_000;

/**
 * What is really under way between two events. An event is over when there is nothing left but statements that wait for a lock, which
 * only a later event can free: so each event has one outcome, however quick the machine is.
 */
export class RealWork {
  readonly #open = new Set<Work>();
  readonly #listBlocked: ListBlocked;
  #wake = Promise.withResolvers<void>();
  /** How often something began or ended; and then, when all that was open waited for locks. */
  #moves = 0;
  #movesBlocked = -1;

  constructor(listBlocked: ListBlocked) {
    this.#listBlocked = listBlocked;
  }

  begin(isStatement = false): Work {
    const work: Work = {
      pid: null,
      isStatement,
      end: () => {
        if (!this.#open.delete(work)) return;
        this.#moves++;
        this.#wake.resolve();
        this.#wake = Promise.withResolvers();
      },
    };
    this.#open.add(work);
    this.#moves++;
    return work;
  }

  async track<T>(promise: Promise<T>): Promise<T> {
    const work = this.begin();
    try {
      return await promise;
    } finally {
      work.end();
    }
  }

  /** Until nothing moves any more. */
  async settle(): Promise<void> {
    const sinceMs = performance.now();
    for (;;) {
      for (let calm = 0; calm < CALM_TURNS && !isFileOpen(); calm++) await nextTurn();
      if (this.#open.size === 0) {
        if (!isFileOpen()) return;
      } else if ([...this.#open].every(({ pid }) => pid !== null)) {
        if (await this.#areBlocked()) return;
      } else if (performance.now() - sinceMs > LOOK_AFTER_MS && (await this.#areBlocked())) return;
      if (isFileOpen()) await nextTurn();
      else await this.#untilMoved();
      if (performance.now() - sinceMs > STUCK_MS)
        throw new Error(`${this.#open.size} things are under way for ${STUCK_MS} ms, and no lock keeps them`);
    }
  }

  async #untilMoved(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, POLL_MS);
    await Promise.race([this.#wake.promise, promise]);
    clearTimeout(timer);
  }

  /** Whether all that is under way waits for locks. */
  async #areBlocked(): Promise<boolean> {
    // What waits for a lock goes on when something else has ended.
    if (this.#moves === this.#movesBlocked) return true;
    const moves = this.#moves;
    const before = [...this.#open];
    if (!before.every(({ isStatement }) => isStatement)) return false;
    const pids = await this.#listBlocked();
    const open = [...this.#open];
    if (open.length !== before.length || pids.length !== open.length) return false;
    const known = new Set(open.map(({ pid }) => pid));
    const fresh = pids.filter((pid) => !known.has(pid));
    for (const work of open)
      if (work.pid === null || !pids.includes(work.pid)) work.pid = fresh.shift() ?? null;
    this.#movesBlocked = moves;
    return true;
  }
}

const isFileOpen = (): boolean =>
  process.getActiveResourcesInfo().some((name) => name.startsWith("FSReq") || name === "CloseReq");
