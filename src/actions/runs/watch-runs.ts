import { listDeadKeys } from "#db/api-keys.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunNotifier } from "#db/runs/run-notifier.ts";
import { listChangedRuns, type VisibleRun } from "#db/runs/runs.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { isTerminal } from "#domain/run.ts";
import { describeError, type Log } from "#lib/log.ts";

/** One who watches a run. */
interface Watcher {
  readonly keyId: string;
  readonly end: AbortController;
  /** The newest state; older ones that nobody has taken yet are left out. */
  newest: VisibleRun;
  wake(): void;
}

/** What a watcher gets: a state, or word that nothing has changed for a while. */
export type RunEvent = VisibleRun | "unchanged";

export interface WatchLimits {
  readonly perKey: number;
  readonly perAccount: number;
  readonly inAll: number;
}

const WATCH_LIMITS: WatchLimits = {
  perKey: limits.eventStreamsPerKeyMax,
  perAccount: limits.eventStreamsPerAccountMax,
  inAll: limits.eventStreamsMax,
};

/**
 * The runs that callers watch in this process. However many there are, what changed is read in one statement: when news
 * come, and once a second because news may get lost.
 */
export class RunWatch {
  readonly #db: Database;
  readonly #news: RunNotifier;
  readonly #log: Log;
  readonly #limits: WatchLimits;
  readonly #watchers = new Map<string, Set<Watcher>>();
  /** Of keys and of accounts, by id. */
  readonly #placesOf = new Map<string, number>();
  readonly #due = new Set<string>();
  #places = 0;
  #reading = false;
  #unsubscribe: (() => void) | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isDraining = false;

  constructor(db: Database, news: RunNotifier, log: Log, watchLimits: WatchLimits = WATCH_LIMITS) {
    this.#db = db;
    this.#news = news;
    this.#log = log;
    this.#limits = watchLimits;
  }

  /**
   * The states of a run from the one after `seen` to the terminal one, the present one at once. It ends earlier when the
   * process drains, the key is revoked, `gone` is aborted, or an hour is over: a client that wants the rest comes again. Throws
   * Problem 429 at once when too many are open.
   */
  watch(
    run: VisibleRun,
    { keyId, accountId }: { readonly keyId: string; readonly accountId: string },
    seen: number,
    gone: AbortSignal,
  ): AsyncGenerator<RunEvent, void> {
    const leave = this.#takePlace(keyId, accountId);
    const end = new AbortController();
    // Also for a generator that nobody begins to read: its `finally` would not run.
    const over = (): void => {
      leave();
      end.abort();
    };
    gone.addEventListener("abort", over, { once: true });
    if (gone.aborted) over();
    return this.#states(run, keyId, seen, end, leave);
  }

  /** Ends every watch at its present state; later ones give the present state alone. */
  drain(): void {
    this.#isDraining = true;
    for (const watcher of this.#all()) watcher.end.abort();
  }

  async *#states(
    run: VisibleRun,
    keyId: string,
    seen: number,
    end: AbortController,
    leave: () => void,
  ): AsyncGenerator<RunEvent, void> {
    let woken = Promise.withResolvers<void>();
    const watcher: Watcher = { keyId, end, newest: run, wake: () => woken.resolve() };
    end.signal.addEventListener("abort", () => watcher.wake(), { once: true });
    const limit = setTimeout(() => end.abort(), limits.eventStreamMs);
    try {
      this.#add(watcher);
      for (let shown = seen; ;) {
        woken = Promise.withResolvers<void>();
        const { newest } = watcher;
        if (newest.sequence > shown) {
          yield newest;
          shown = newest.sequence;
        }
        if (isTerminal(newest.status) || end.signal.aborted) return;
        if (watcher.newest.sequence > shown) continue;
        if (!(await within(woken.promise, limits.eventHeartbeatMs))) yield "unchanged";
      }
    } finally {
      clearTimeout(limit);
      this.#remove(watcher);
      leave();
    }
  }

  /** Gives the way to leave it, which may be told twice. */
  #takePlace(keyId: string, accountId: string): () => void {
    const { perKey, perAccount, inAll } = this.#limits;
    if (this.#countOf(keyId) >= perKey) throw tooMany(`this API key (${perKey})`);
    if (this.#countOf(accountId) >= perAccount) throw tooMany(`the account (${perAccount})`);
    if (this.#places >= inAll) throw tooMany(`this process (${inAll})`);
    this.#count(keyId, accountId, 1);
    let isLeft = false;
    return () => {
      if (isLeft) return;
      isLeft = true;
      this.#count(keyId, accountId, -1);
    };
  }

  #countOf(id: string): number {
    return this.#placesOf.get(id) ?? 0;
  }

  #count(keyId: string, accountId: string, by: 1 | -1): void {
    this.#places += by;
    for (const id of [keyId, accountId]) {
      const count = this.#countOf(id) + by;
      if (count === 0) this.#placesOf.delete(id);
      else this.#placesOf.set(id, count);
    }
  }

  #add(watcher: Watcher): void {
    if (this.#isDraining) watcher.end.abort();
    const { id } = watcher.newest;
    const others = this.#watchers.get(id);
    if (others) others.add(watcher);
    else this.#watchers.set(id, new Set([watcher]));
    this.#unsubscribe ??= this.#news.subscribe({
      changed: (runIds) => this.#look(runIds),
      resumed: () => this.#look([...this.#watchers.keys()]),
    });
    this.#timer ??= setInterval(() => void this.#poll(), limits.eventPollMs);
    // It may have changed since it was read.
    this.#look([id]);
  }

  #remove(watcher: Watcher): void {
    const { id } = watcher.newest;
    const others = this.#watchers.get(id);
    others?.delete(watcher);
    if (others?.size === 0) this.#watchers.delete(id);
    if (this.#watchers.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    clearInterval(this.#timer ?? undefined);
    this.#timer = null;
  }

  *#all(): Iterable<Watcher> {
    for (const watchers of this.#watchers.values()) yield* watchers;
  }

  /** Correctness does not depend on news. */
  async #poll(): Promise<void> {
    this.#look([...this.#watchers.keys()]);
    try {
      const keyIds = [...new Set([...this.#all()].map(({ keyId }) => keyId))];
      const dead = new Set(await listDeadKeys(this.#db, keyIds));
      for (const { keyId, end } of this.#all()) if (dead.has(keyId)) end.abort();
    } catch (error) {
      this.#log.debug(describeError(error), "looking for revoked keys failed; it is tried again");
    }
  }

  /** Reads what has changed of these runs; what comes meanwhile is read next. */
  #look(runIds: readonly string[]): void {
    for (const id of runIds) if (this.#watchers.has(id)) this.#due.add(id);
    if (this.#reading || this.#due.size === 0) return;
    this.#reading = true;
    void (async () => {
      try {
        while (this.#due.size > 0) await this.#readDue();
      } catch (error) {
        this.#log.debug(describeError(error), "reading watched runs failed; it is tried again");
      } finally {
        this.#reading = false;
      }
    })();
  }

  async #readDue(): Promise<void> {
    const watched = new Map<string, number>();
    for (const id of this.#due) {
      const sequences = [...(this.#watchers.get(id) ?? [])].map(({ newest }) => newest.sequence);
      if (sequences.length > 0) watched.set(id, Math.min(...sequences));
    }
    this.#due.clear();
    if (watched.size === 0) return;
    for (const run of await listChangedRuns(this.#db, watched)) {
      for (const watcher of this.#watchers.get(run.id) ?? []) {
        if (run.sequence <= watcher.newest.sequence) continue;
        watcher.newest = run;
        watcher.wake();
      }
    }
  }
}

function tooMany(quota: string): Problem {
  return new Problem(
    "rate_limit_exceeded",
    `Too many event streams of ${quota} are open. Close one, or poll the run's status.`,
    { headers: { "Retry-After": "5" } },
  );
}

/** Whether the promise resolves in time. */
async function within(promise: Promise<void>, ms: number): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), ms);
  try {
    return await Promise.race([promise.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
