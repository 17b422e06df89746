import { newWatcher, Watchers, type Watcher } from "#actions/watchers.ts";
import { listDeadKeys } from "#db/api-keys.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunNotifier } from "#db/runs/run-notifier.ts";
import { listChangedRuns, type VisibleRun } from "#db/runs/runs.ts";
import { ceilingsOf } from "#domain/ceilings.ts";
import { limits } from "#domain/limits.ts";
import { isTerminal } from "#domain/run.ts";
import type { Log } from "#lib/log.ts";

interface RunWatcher extends Watcher {
  readonly accountId: string;
  /** The newest state; older ones that were not consumed are dropped. */
  newest: VisibleRun;
  /** The sequence of the last state that was taken. */
  shown: number;
}

/** What a watcher receives: a state, or a signal that nothing has changed for a while. */
export type RunEvent = VisibleRun | "unchanged";

/**
 * The runs that callers watch in this process. However many there are, changes are read in one statement: when a notification
 * arrives, and once a second because notifications may get lost.
 */
export class RunWatch {
  readonly #db: Database;
  readonly #watchers: Watchers<RunWatcher>;
  readonly #byRun = new Map<string, Set<RunWatcher>>();
  readonly #due = new Set<string>();

  constructor(db: Database, news: RunNotifier, log: Log, watchLimits = ceilingsOf(1).eventStreams) {
    this.#db = db;
    const lookAtAll = (): void => this.#look([...this.#byRun.keys()]);
    this.#watchers = new Watchers({
      news,
      log,
      listener: { changed: (runIds) => this.#look(runIds), resumed: lookAtAll },
      quotas: [
        { name: "this API key", max: watchLimits.perKey, of: ({ holder }) => holder },
        { name: "the account", max: watchLimits.perAccount, of: ({ accountId }) => accountId },
        { name: "this process", max: watchLimits.inAll, of: () => null },
      ],
      refusal: (quota) => `Too many event streams of ${quota} are open. Close one, or poll the run's status.`,
      // Correctness does not depend on notifications.
      lookEveryMs: limits.eventPollMs,
      onLook: lookAtAll,
      listDead: async (keyIds) => await listDeadKeys(db, keyIds),
      isDue: () => this.#due.size > 0,
      readDue: async () => await this.#readDue(),
    });
  }

  /**
   * Yields the states of a run from the one after `seen` to the terminal one, the current one immediately. Ends earlier if its
   * key is revoked, or for the reasons of every watch. Throws Problem 429 immediately when too many are open.
   */
  watch(
    run: VisibleRun,
    { keyId, accountId }: { readonly keyId: string; readonly accountId: string },
    seen: number,
    gone: AbortSignal,
  ): AsyncGenerator<RunEvent, void> {
    const watcher = { ...newWatcher(keyId), accountId, newest: run, shown: seen };
    this.#watchers.add(watcher, gone);
    return this.#states(watcher);
  }

  /** Ends every watch after its current state; later watches only yield the current state. */
  drain(): void {
    this.#watchers.drain();
  }

  async *#states(watcher: RunWatcher): AsyncGenerator<RunEvent, void> {
    const { id } = watcher.newest;
    const others = this.#byRun.get(id) ?? new Set();
    this.#byRun.set(id, others.add(watcher));
    // It may have changed since it was read.
    this.#look([id]);
    try {
      yield* this.#watchers.events<RunEvent>(watcher, {
        take: () => {
          if (watcher.newest.sequence <= watcher.shown) return undefined;
          watcher.shown = watcher.newest.sequence;
          return watcher.newest;
        },
        heartbeat: "unchanged",
        isOver: () => isTerminal(watcher.newest.status) && watcher.newest.sequence <= watcher.shown,
      });
    } finally {
      others.delete(watcher);
      if (others.size === 0) this.#byRun.delete(id);
    }
  }

  /** Reads the changes of these runs. Notifications that arrive in the meantime are processed next. */
  #look(runIds: readonly string[]): void {
    for (const id of runIds) if (this.#byRun.has(id)) this.#due.add(id);
    this.#watchers.read();
  }

  async #readDue(): Promise<void> {
    const watched = new Map<string, number>();
    for (const id of this.#due) {
      const sequences = [...(this.#byRun.get(id) ?? [])].map(({ newest }) => newest.sequence);
      if (sequences.length > 0) watched.set(id, Math.min(...sequences));
    }
    this.#due.clear();
    if (watched.size === 0) return;
    for (const run of await listChangedRuns(this.#db, watched)) {
      for (const watcher of this.#byRun.get(run.id) ?? []) {
        if (run.sequence <= watcher.newest.sequence) continue;
        watcher.newest = run;
        watcher.wake();
      }
    }
  }
}
