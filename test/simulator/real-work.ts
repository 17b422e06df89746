import { setImmediate as nextTurn } from "node:timers/promises";

/** Something that this process really waits for: an answer of PostgreSQL, a thread, a file. */
export interface Work {
  /** The backend of a statement that waits for a lock. */
  pid: number | null;
  /** The server has been told to end it, so it will: nothing else happens before. */
  isCancelled: boolean;
  /** Only a statement may stand still: until another transaction ends. */
  readonly isStatement: boolean;
  readonly label: string;
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

  begin(label: string, isStatement = false): Work {
    const work: Work = {
      pid: null,
      isCancelled: false,
      isStatement,
      label,
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

  async track<T>(label: string, promise: Promise<T>): Promise<T> {
    const work = this.begin(label);
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
      for (let calm = 0; calm < CALM_TURNS; calm = isMoreDue() ? 0 : calm + 1) await nextTurn();
      if (this.#open.size === 0) return;
      if ([...this.#open].every(({ pid }) => pid !== null)) {
        if (await this.#areBlocked()) return;
      } else if (performance.now() - sinceMs > LOOK_AFTER_MS && (await this.#areBlocked())) return;
      await this.#untilMoved();
      if (performance.now() - sinceMs > STUCK_MS)
        throw new Error(
          `under way for ${STUCK_MS} ms, and no lock keeps it: ${[...this.#open].map(({ label }) => label).join(", ")}`,
        );
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
    // What waits for a lock goes on when something else has ended, or when it is told to.
    if (this.#moves === this.#movesBlocked) return true;
    const moves = this.#moves;
    const before = [...this.#open];
    if (!before.every(({ isStatement, isCancelled }) => isStatement && !isCancelled)) return false;
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

/** Whether something follows by itself: in the next turn of the event loop, or from a file. */
const isMoreDue = (): boolean =>
  process
    .getActiveResourcesInfo()
    .some((name) => name === "Immediate" || name === "CloseReq" || name.startsWith("FSReq"));
