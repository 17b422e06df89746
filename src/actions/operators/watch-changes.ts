import { newWatcher, Watchers, type Watcher } from "#actions/watchers.ts";
import {
  findNewestRun,
  listLiveHolders,
  listNewerRuns,
  listReviewStates,
  listRunStates,
  type NewestRun,
  type ReviewState,
  type RunState,
} from "#db/operators/operator-changes.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunNotifier } from "#db/runs/run-notifier.ts";
import { ceilingsOf } from "#domain/ceilings.ts";
import { limits } from "#domain/limits.ts";
import type { Log } from "#lib/log.ts";

/** An event for a dashboard. `stale`: too many changes, or some may have been missed; it reloads its lists. */
export type OperatorEvent =
  | { readonly kind: "changes"; readonly runs: readonly RunState[]; readonly reviews: readonly ReviewState[] }
  | { readonly kind: "stale" }
  | { readonly kind: "alive" };

interface OperatorWatcher extends Watcher {
  /** The accounts whose changes it is told; null: all. */
  readonly limit: readonly string[] | null;
  /** Pending changes; null: too many. */
  runs: Map<string, RunState> | null;
  reviews: Map<string, ReviewState>;
}

/** Maximum number of pending runs per dashboard, and per statement. */
const RUNS_MAX = 200;
/** Changes within this time of the last poll are read together. */
const PAUSE_MS = 250;
const SESSIONS_MS = 5_000;

/**
 * Notifies the dashboards of this process of changed runs and reviews, from the same notifications as callers' streams, read once
 * for all of them. Correctness does not depend on it: dashboards also poll their lists.
 */
export class OperatorWatch {
  readonly #db: Database;
  readonly #watchers: Watchers<OperatorWatcher>;
  readonly #changed = new Set<string>();
  #newest: NewestRun | null = null;
  #mayBeNew = false;

  constructor(db: Database, news: RunNotifier, log: Log, ceilings = ceilingsOf(1).dashboardStreams) {
    this.#db = db;
    this.#watchers = new Watchers({
      news,
      log,
      listener: {
        changed: (runIds) => this.#look(runIds),
        waiting: () => {
          this.#lookForNew();
          return false;
        },
        resumed: () => this.#tellAll([], []),
      },
      quotas: [
        {
          name: "this session or token",
          max: ceilings.perSession,
          of: ({ holder }) => holder,
        },
        { name: "this process", max: ceilings.inAll, of: () => null },
      ],
      refusal: () => "Too many dashboards are open. Close one, or reload manually.",
      lookEveryMs: SESSIONS_MS,
      listDead: async (ids) => {
        const live = new Set(await listLiveHolders(db, ids, limits.operatorIdleMs));
        return ids.filter((id) => !live.has(id));
      },
      isDue: () => this.#watchers.all.size > 0 && (this.#changed.size > 0 || this.#mayBeNew),
      readDue: async () => {
        await this.#readDue();
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      },
      onReadFailed: () => this.#tellAll([], []),
      onEmpty: () => {
        this.#newest = null;
        this.#changed.clear();
      },
    });
  }

  /**
   * Yields changes, of the accounts in `limit`, until the session or token ends, the process drains, `gone` is aborted or an hour has passed. Throws Problem 429
   * immediately when too many are open.
   */
  watch(
    holder: string,
    limit: readonly string[] | null,
    gone: AbortSignal,
  ): AsyncGenerator<OperatorEvent, void> {
    const watcher: OperatorWatcher = { ...newWatcher(holder), limit, runs: new Map(), reviews: new Map() };
    this.#watchers.add(watcher, gone);
    this.#watchers.listen();
    // Runs after this position are new.
    if (this.#newest === null) this.#lookForNew();
    return this.#watchers.events<OperatorEvent>(watcher, {
      take: () => takeEvent(watcher),
      heartbeat: { kind: "alive" },
    });
  }

  drain(): void {
    this.#watchers.drain();
  }

  #look(runIds: readonly string[]): void {
    for (const id of runIds) this.#changed.add(id);
    this.#watchers.read();
  }

  #lookForNew(): void {
    this.#mayBeNew = true;
    this.#watchers.read();
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

  /** Runs changed since the last poll; null: too many. */
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

  /** Tells each dashboard what it may see; without runs, to reload. */
  #tellAll(runs: readonly RunState[], reviews: readonly ReviewState[]): void {
    for (const watcher of this.#watchers.all) {
      if (runs.length === 0) watcher.runs = null;
      const mayKnow = ({ accountId }: RunState | ReviewState): boolean =>
        watcher.limit?.includes(accountId) ?? true;
      for (const run of runs.filter(mayKnow)) watcher.runs?.set(run.id, run);
      for (const review of reviews.filter(mayKnow)) watcher.reviews.set(review.id, review);
      if (watcher.runs && watcher.runs.size > RUNS_MAX) watcher.runs = null;
      watcher.wake();
    }
  }
}

/** Undefined: there is nothing to report, or the session may no longer see it. */
function takeEvent(watcher: OperatorWatcher): OperatorEvent | undefined {
  const { runs, reviews, end } = watcher;
  if (runs?.size === 0 || end.signal.aborted) return undefined;
  watcher.runs = new Map();
  watcher.reviews = new Map();
  if (runs === null) return { kind: "stale" };
  return { kind: "changes", runs: [...runs.values()], reviews: [...reviews.values()] };
}
