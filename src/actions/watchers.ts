import type { ChangeListener, RunNotifier } from "#db/runs/run-notifier.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { describeError, type Log } from "#lib/log.ts";

/** A watcher, with an open response. */
export interface Watcher {
  /** The API key or the session that it watches with, and ends with. */
  readonly holder: string;
  readonly end: AbortController;
  wake(): void;
}

export const newWatcher = (holder: string): Watcher => ({
  holder,
  end: new AbortController(),
  wake: () => undefined,
});

/** How many watchers with the same key are allowed. */
interface Quota<W extends Watcher> {
  readonly name: string;
  readonly max: number;
  readonly of: (watcher: W) => string | null;
}

export interface WatchersOptions<W extends Watcher> {
  readonly news: RunNotifier;
  readonly log: Log;
  readonly listener: ChangeListener;
  readonly quotas: readonly Quota<W>[];
  /** The quotas, each with the message for a caller that exceeds it. */
  readonly refusal: (quota: string) => string;
  /** How often, while there are watchers, `onLook` is called and holders are checked. */
  readonly lookEveryMs: number;
  readonly onLook?: () => void;
  /** Which of these holders are no longer allowed to watch. */
  readonly listDead: (holders: readonly string[]) => Promise<readonly string[]>;
  readonly onEmpty?: () => void;
  /** Whether there is anything to read for them. */
  readonly isDue: () => boolean;
  readonly readDue: () => Promise<void>;
  readonly onReadFailed?: () => void;
}

/** The events of one watcher. */
export interface WatcherEvents<Event> {
  /** Events that were not yet delivered; undefined: none. */
  readonly take: () => Event | undefined;
  /** Delivered when nothing has happened for a while. */
  readonly heartbeat: Event;
  /** There will be no further events. */
  readonly isOver?: () => boolean;
}

/** The watchers of one kind in this process: enforces their quotas, delivers their events, and ends them. */
export class Watchers<W extends Watcher> {
  readonly #options: WatchersOptions<W>;
  readonly #all = new Set<W>();
  #unsubscribe: (() => void) | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isDraining = false;
  #isReading = false;

  constructor(options: WatchersOptions<W>) {
    this.#options = options;
  }

  get all(): ReadonlySet<W> {
    return this.#all;
  }

  /** Takes a place until `gone` is aborted or the events have ended. Throws Problem 429. */
  add(watcher: W, gone: AbortSignal): void {
    const { quotas, refusal } = this.#options;
    for (const { name, max, of } of quotas) {
      const own = of(watcher);
      let count = 0;
      for (const each of this.#all) if (of(each) === own) count++;
      if (count < max) continue;
      const headers = { "Retry-After": "5" };
      throw new Problem("rate_limit_exceeded", refusal(`${name} (${max})`), { headers });
    }
    this.#all.add(watcher);
    // Also for a generator that is never read, because its `finally` would not run.
    const over = (): void => {
      watcher.end.abort();
      this.#remove(watcher);
    };
    gone.addEventListener("abort", over, { once: true });
    if (gone.aborted || this.#isDraining) over();
  }

  /** Receives notifications from now on. */
  listen(): void {
    if (this.#all.size === 0) return;
    const { news, listener, lookEveryMs } = this.#options;
    this.#unsubscribe ??= news.subscribe(listener);
    this.#timer ??= setInterval(() => void this.#look(), lookEveryMs);
  }

  /**
   * Yields the events of a watcher until there can't be any more. Ends earlier when the process drains, the holder is no longer
   * allowed to watch, the client disconnects, or after an hour; the client can then reconnect.
   */
  async *events<Event>(
    watcher: W,
    { take, heartbeat, isOver = () => false }: WatcherEvents<Event>,
  ): AsyncGenerator<Event, void> {
    const own: Watcher = watcher;
    const { end } = own;
    const limit = setTimeout(() => end.abort(), limits.eventStreamMs);
    end.signal.addEventListener("abort", () => own.wake(), { once: true });
    this.listen();
    try {
      for (;;) {
        const woken = Promise.withResolvers<void>();
        own.wake = () => woken.resolve();
        const event = take();
        if (event !== undefined) yield event;
        if (end.signal.aborted || isOver()) return;
        if (event === undefined && !(await within(woken.promise, limits.eventHeartbeatMs))) yield heartbeat;
      }
    } finally {
      clearTimeout(limit);
      this.#remove(watcher);
    }
  }

  /** Reads the pending changes; those that arrive in the meantime are read next. */
  read(): void {
    const { isDue, readDue, onReadFailed, log } = this.#options;
    if (this.#isReading || !isDue()) return;
    this.#isReading = true;
    void (async () => {
      try {
        while (isDue()) await readDue();
      } catch (error) {
        log.debug(describeError(error), "reading what is watched failed; retrying");
        onReadFailed?.();
      } finally {
        this.#isReading = false;
      }
    })();
  }

  /** Ends every watch; later ones end as soon as they begin. */
  drain(): void {
    this.#isDraining = true;
    for (const { end } of this.#all) end.abort();
  }

  #remove(watcher: W): void {
    if (!this.#all.delete(watcher) || this.#all.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    clearInterval(this.#timer ?? undefined);
    this.#timer = null;
    this.#options.onEmpty?.();
  }

  async #look(): Promise<void> {
    const { onLook, listDead, log } = this.#options;
    onLook?.();
    try {
      const dead = new Set(await listDead([...new Set([...this.#all].map(({ holder }) => holder))]));
      for (const { holder, end } of this.#all) if (dead.has(holder)) end.abort();
    } catch (error) {
      log.debug(describeError(error), "checking watchers' permissions failed and will be retried");
    }
  }
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
