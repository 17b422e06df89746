import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * Only a `statement` may stand still: until another transaction ends. What gives up locks is a `release`: at its end what stood still may go on,
 * as at the end of a statement that stood still itself.
 */
type WorkKind = "statement" | "release" | "other";

/** Something that this process really waits for: an answer of PostgreSQL, a thread, a file. */
export interface Work {
  /** The backend of a statement that waits for a lock. */
  pid: number | null;
  /** The server has been told to end it, so it will: nothing else happens before. */
  isCancelled: boolean;
  readonly kind: WorkKind;
  readonly label: string;
  end(): void;
}

/** Backends of this database that wait for a lock of another one. */
export type ListBlocked = () => Promise<readonly number[]>;

/** Turns of the event loop without anything under way, after which nothing more comes by itself. */
const CALM_TURNS = 4;
/** Looks at what is due name all sockets and timers, so not each turn has one; the last one does. */
const LOOK_EACH_TURNS = 2;
/** Of a statement without an answer: after this time, and then after twice as long each time. */
const LOOK_AFTER_MS = 2;
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
  /** How often locks may have been given up; and then, when all that was open waited for locks. */
  #releases = 0;
  #releasesBlocked = -1;

  constructor(listBlocked: ListBlocked) {
    this.#listBlocked = listBlocked;
  }

  begin(label: string, kind: WorkKind = "other"): Work {
    const work: Work = {
      pid: null,
      isCancelled: false,
      kind,
      label,
      end: () => {
        if (!this.#open.delete(work)) return;
        if (kind === "release" || work.pid !== null) this.#releases++;
        this.#wake.resolve();
        this.#wake = Promise.withResolvers();
      },
    };
    this.#open.add(work);
    return work;
  }

  async track<T>(label: string, promise: Promise<T>, kind?: WorkKind): Promise<T> {
    const work = this.begin(label, kind);
    try {
      return await promise;
    } finally {
      work.end();
    }
  }

  /** Until nothing moves any more. */
  async settle(): Promise<void> {
    const sinceMs = performance.now();
    for (let lookMs = LOOK_AFTER_MS; ;) {
      await this.#untilCalm();
      if (this.#open.size === 0) return;
      const tookMs = performance.now() - sinceMs;
      const isAnyMoving = this.#isAnyMoving();
      if ((!isAnyMoving || tookMs > lookMs) && (await this.#areBlocked())) {
        if (!isAnyMoving) return;
        // Now that no answer comes first, what else comes has its turns.
        continue;
      }
      if (tookMs > lookMs) lookMs *= 2;
      await this.#untilMoved();
      if (tookMs > STUCK_MS)
        throw new Error(
          `under way for ${STUCK_MS} ms, and no lock keeps it: ${[...this.#open].map(({ label }) => label).join(", ")}`,
        );
    }
  }

  /** What comes by itself has come, unless an answer must come first. */
  async #untilCalm(): Promise<void> {
    for (let calm = 0; calm < CALM_TURNS && !this.#isAnyMoving();) {
      await nextTurn();
      calm = (calm + 1) % LOOK_EACH_TURNS === 0 && isMoreDue() ? 0 : calm + 1;
    }
  }

  /** Whether anything is under way that is not known to wait for a lock, or that was told not to. */
  #isAnyMoving(): boolean {
    for (const { pid, isCancelled } of this.#open) if (pid === null || isCancelled) return true;
    return false;
  }

  async #untilMoved(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, POLL_MS);
    await Promise.race([this.#wake.promise, promise]);
    clearTimeout(timer);
  }

  /** Whether all that is under way waits for locks. */
  async #areBlocked(): Promise<boolean> {
    // What waits for a lock goes on when one was given up, or when it is told to.
    if (this.#releases === this.#releasesBlocked && !this.#isAnyMoving()) return true;
    const releases = this.#releases;
    const before = [...this.#open];
    if (!before.every(({ kind, isCancelled }) => kind === "statement" && !isCancelled)) return false;
    const pids = await this.#listBlocked();
    const open = [...this.#open];
    if (open.length !== before.length || pids.length !== open.length) return false;
    const known = new Set(open.map(({ pid }) => pid));
    const fresh = pids.filter((pid) => !known.has(pid));
    for (const work of open)
      if (work.pid === null || !pids.includes(work.pid)) work.pid = fresh.shift() ?? null;
    this.#releasesBlocked = releases;
    return true;
  }
}

/** Whether something follows by itself: in the next turn of the event loop, or from a file. */
const isMoreDue = (): boolean =>
  process
    .getActiveResourcesInfo()
    .some((name) => name === "Immediate" || name === "CloseReq" || name.startsWith("FSReq"));
