import type { NewsListener, RunNotifier } from "#db/runs/run-notifier.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { describeError, type Log } from "#lib/log.ts";

/** One who watches, by an answer that is open. */
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

/** How many may watch that have the same in common. */
interface Quota<W extends Watcher> {
  readonly name: string;
  readonly max: number;
  readonly of: (watcher: W) => string | null;
}

export interface WatchersOptions<W extends Watcher> {
  readonly news: RunNotifier;
  readonly log: Log;
  readonly listener: NewsListener;
  readonly quotas: readonly Quota<W>[];
  /** What one is told who may not watch, and by which quota. */
  readonly refusal: (quota: string) => string;
  /** How often, while anybody watches, `onLook` is called and holders are looked at. */
  readonly lookEveryMs: number;
  readonly onLook?: () => void;
  /** Which of these holders may not watch any more. */
  readonly listDead: (holders: readonly string[]) => Promise<readonly string[]>;
  readonly onEmpty?: () => void;
  /** Whether there is anything to read for them. */
  readonly isDue: () => boolean;
  readonly readDue: () => Promise<void>;
  readonly onReadFailed?: () => void;
}

/** What one watcher is told. */
export interface Telling<Event> {
  /** What it has not been told yet; undefined: there is nothing. */
  readonly take: () => Event | undefined;
  /** Told when nothing has come for a while. */
  readonly heartbeat: Event;
  /** Nothing will come any more. */
  readonly isOver?: () => boolean;
}

/** Those who watch something in this process: their places, what they hear of, and when they end. */
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
    // Also for a generator that nobody begins to read: its `finally` would not run.
    const over = (): void => {
      watcher.end.abort();
      this.#remove(watcher);
    };
    gone.addEventListener("abort", over, { once: true });
    if (gone.aborted || this.#isDraining) over();
  }

  /** Hears of what is new from now on. */
  listen(): void {
    if (this.#all.size === 0) return;
    const { news, listener, lookEveryMs } = this.#options;
    this.#unsubscribe ??= news.subscribe(listener);
    this.#timer ??= setInterval(() => void this.#look(), lookEveryMs);
  }

  /**
   * What a watcher is told, until nothing will come any more. It ends earlier when the process drains, its holder may not watch any
   * more, its client is gone or an hour is over: a client that wants the rest comes again.
   */
  async *events<Event>(
    watcher: W,
    { take, heartbeat, isOver = () => false }: Telling<Event>,
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

  /** Reads what is due; what comes meanwhile is read next. */
  read(): void {
    const { isDue, readDue, onReadFailed, log } = this.#options;
    if (this.#isReading || !isDue()) return;
    this.#isReading = true;
    void (async () => {
      try {
        while (isDue()) await readDue();
      } catch (error) {
        log.debug(describeError(error), "reading what is watched failed; it is tried again");
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
      log.debug(describeError(error), "looking for watchers that may not go on failed; it is tried again");
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
