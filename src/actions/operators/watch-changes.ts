import {
  findNewestRun,
  listLiveSessionIds,
  listNewerRuns,
  listReviewStates,
  listRunStates,
  type NewestRun,
  type ReviewState,
  type RunState,
} from "#db/operators/operator-changes.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunNotifier } from "#db/runs/run-notifier.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { describeError, type Log } from "#lib/log.ts";

/** What a dashboard is told. `stale`: more than can be told, or something may have been missed; it reads its lists again. */
export type OperatorEvent =
  | { readonly kind: "changes"; readonly runs: readonly RunState[]; readonly reviews: readonly ReviewState[] }
  | { readonly kind: "stale" }
  | { readonly kind: "alive" };

interface Watcher {
  readonly sessionId: string;
  readonly end: AbortController;
  /** What it has not taken yet; null: more than can be told. */
  runs: Map<string, RunState> | null;
  reviews: Map<string, ReviewState>;
  wake(): void;
}

/** Runs that wait for a dashboard that reads slowly, and that are looked at in one statement. */
const RUNS_MAX = 200;
/** What changes within this of the last look is looked at together. */
const PAUSE_MS = 250;
const SESSIONS_MS = 5_000;

/**
 * What dashboards watch in this process: the states of runs and reviews of any process, by the same news that callers' streams
 * go by, read once for all of them. Nothing depends on it: a dashboard reads its lists now and then without being told.
 */
export class OperatorWatch {
  readonly #db: Database;
  readonly #news: RunNotifier;
  readonly #log: Log;
  readonly #watchers = new Set<Watcher>();
  readonly #changed = new Set<string>();
  #newest: NewestRun | null = null;
  #mayBeNew = false;
  #reading = false;
  #unsubscribe: (() => void) | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isDraining = false;

  constructor(db: Database, news: RunNotifier, log: Log) {
    this.#db = db;
    this.#news = news;
    this.#log = log;
  }

  /**
   * What changes from now on, until the session ends, the process drains, `gone` is aborted or an hour is over. Throws Problem 429
   * at once when too many are open.
   */
  watch(sessionId: string, gone: AbortSignal): AsyncGenerator<OperatorEvent, void> {
    const own = [...this.#watchers].filter((each) => each.sessionId === sessionId).length;
    if (own >= limits.dashboardStreamsPerSessionMax || this.#watchers.size >= limits.dashboardStreamsMax)
      throw tooMany();
    const watcher: Watcher = {
      sessionId,
      end: new AbortController(),
      runs: new Map(),
      reviews: new Map(),
      wake: () => undefined,
    };
    this.#add(watcher);
    // Also for a generator that nobody begins to read: its `finally` would not run.
    const over = (): void => {
      watcher.end.abort();
      this.#remove(watcher);
    };
    gone.addEventListener("abort", over, { once: true });
    if (gone.aborted || this.#isDraining) over();
    return this.#events(watcher);
  }

  drain(): void {
    this.#isDraining = true;
    for (const { end } of this.#watchers) end.abort();
  }

  async *#events(watcher: Watcher): AsyncGenerator<OperatorEvent, void> {
    const limit = setTimeout(() => watcher.end.abort(), limits.eventStreamMs);
    watcher.end.signal.addEventListener("abort", () => watcher.wake(), { once: true });
    try {
      while (!watcher.end.signal.aborted) {
        const woken = Promise.withResolvers<"woken">();
        watcher.wake = () => woken.resolve("woken");
        const event = takeEvent(watcher);
        if (event) yield event;
        else if ((await within(woken.promise, limits.eventHeartbeatMs)) === "late") yield { kind: "alive" };
      }
    } finally {
      clearTimeout(limit);
      this.#remove(watcher);
    }
  }

  #add(watcher: Watcher): void {
    this.#watchers.add(watcher);
    this.#unsubscribe ??= this.#news.subscribe({
      changed: (runIds) => this.#look(runIds),
      waiting: () => {
        this.#lookForNew();
        return false;
      },
      resumed: () => this.#tellAll([], []),
    });
    this.#timer ??= setInterval(() => void this.#endDeadSessions(), SESSIONS_MS);
    // From where on runs are new.
    if (this.#newest === null) this.#lookForNew();
  }

  #remove(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher) || this.#watchers.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    clearInterval(this.#timer ?? undefined);
    this.#timer = null;
    this.#newest = null;
    this.#changed.clear();
  }

  async #endDeadSessions(): Promise<void> {
    try {
      const ids = [...new Set([...this.#watchers].map(({ sessionId }) => sessionId))];
      const live = new Set(await listLiveSessionIds(this.#db, ids, limits.operatorIdleMs));
      for (const { sessionId, end } of this.#watchers) if (!live.has(sessionId)) end.abort();
    } catch (error) {
      this.#log.debug(describeError(error), "looking for ended sessions failed; it is tried again");
    }
  }

  #look(runIds: readonly string[]): void {
    for (const id of runIds) this.#changed.add(id);
    this.#read();
  }

  #lookForNew(): void {
    this.#mayBeNew = true;
    this.#read();
  }

  #read(): void {
    if (this.#reading) return;
    this.#reading = true;
    void (async () => {
      try {
        while (this.#watchers.size > 0 && (this.#changed.size > 0 || this.#mayBeNew)) {
          await this.#readDue();
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        }
      } catch (error) {
        this.#log.debug(describeError(error), "reading what dashboards watch failed");
        this.#tellAll([], []);
      } finally {
        this.#reading = false;
      }
    })();
  }

  async #readDue(): Promise<void> {
    const ids = [...this.#changed];
    const mayBeNew = this.#mayBeNew;
    this.#changed.clear();
    this.#mayBeNew = false;
    if (ids.length > RUNS_MAX) return this.#tellAll([], []);
    const fresh = mayBeNew ? await this.#readNew() : [];
    if (fresh === null) return this.#tellAll([], []);
    const [runs, reviews] =
      ids.length === 0
        ? [[], []]
        : await Promise.all([listRunStates(this.#db, ids), listReviewStates(this.#db, ids)]);
    if (fresh.length + runs.length > 0) this.#tellAll([...fresh, ...runs], reviews);
  }

  /** Runs since the last look; null: more than can be told. */
  async #readNew(): Promise<readonly RunState[] | null> {
    if (this.#newest === null) {
      this.#newest = await findNewestRun(this.#db);
      return [];
    }
    const fresh = await listNewerRuns(this.#db, this.#newest, RUNS_MAX);
    const last = fresh.at(-1);
    if (last === undefined) return fresh;
    this.#newest = fresh.length < RUNS_MAX ? last : await findNewestRun(this.#db);
    return fresh.length < RUNS_MAX ? fresh : null;
  }

  /** Nothing: whatever they show may be old. */
  #tellAll(runs: readonly RunState[], reviews: readonly ReviewState[]): void {
    for (const watcher of this.#watchers) {
      if (runs.length === 0) watcher.runs = null;
      for (const run of runs) watcher.runs?.set(run.id, run);
      for (const review of reviews) watcher.reviews.set(review.id, review);
      if (watcher.runs && watcher.runs.size > RUNS_MAX) watcher.runs = null;
      watcher.wake();
    }
  }
}

/** Undefined: there is nothing to tell. */
function takeEvent(watcher: Watcher): OperatorEvent | undefined {
  const { runs, reviews } = watcher;
  if (runs?.size === 0) return undefined;
  watcher.runs = new Map();
  watcher.reviews = new Map();
  if (runs === null) return { kind: "stale" };
  return { kind: "changes", runs: [...runs.values()], reviews: [...reviews.values()] };
}

function tooMany(): Problem {
  return new Problem("rate_limit_exceeded", "Too many dashboards watch. Close one, or reload now and then.", {
    headers: { "Retry-After": "5" },
  });
}

async function within(promise: Promise<"woken">, ms: number): Promise<"woken" | "late"> {
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(() => late.resolve("late"), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
