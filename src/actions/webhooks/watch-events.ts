import { newWatcher, Watchers, type Watcher } from "#actions/watchers.ts";
import { listDeadKeys } from "#db/api-keys.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunNotifier } from "#db/runs/run-notifier.ts";
import {
  findEventPlace,
  listAccountEvents,
  listenToAccounts,
  type AccountEvent,
} from "#db/webhooks/account-events.ts";
import { ceilingsOf } from "#domain/ceilings.ts";
import { limits } from "#domain/limits.ts";
import { renderEvent } from "#domain/webhook.ts";
import { describeError, type Log } from "#lib/log.ts";

/** An event as a stream sends it; `unchanged`: there was none for a while. */
export type StreamedEvent =
  | { readonly id: string; readonly type: string; readonly body: string }
  | "unchanged";

interface EventWatcher extends Watcher {
  readonly accountId: string;
  /** Only events after this place are its. */
  readonly after: string;
  readonly pending: AccountEvent[];
  /** Ids of those that a look may find again. */
  seen: Set<string>;
}

/** Events of transactions that began earlier than others and end later have a place before them: each look goes back so far. */
const LOOK_BACK_MS = 15_000;
/** Without a stream, events are still written for so long, so that a client that reconnects misses none. */
const LISTEN_MS = 300_000;
const LISTEN_EVERY_MS = 60_000;
const EVENTS_AT_ONCE = 1_000;
/** For a slow reader. */
const PENDING_MAX = 10_000;

/**
 * The streams of accounts' events in this process. However many there are, one statement a second reads their events. An event may come
 * twice, under the same id, when a client reconnects.
 */
export class EventWatch {
  readonly #db: Database;
  readonly #log: Log;
  readonly #watchers: Watchers<EventWatcher>;
  /** Where the next look begins; null: there were no watchers. */
  #from: string | null = null;
  #isDue = false;
  #listensUntilMs = 0;

  constructor(db: Database, news: RunNotifier, log: Log, ceilings = ceilingsOf(1).eventStreams) {
    this.#db = db;
    this.#log = log;
    this.#watchers = new Watchers({
      news,
      log,
      listener: { changed: () => undefined, resumed: () => this.#look() },
      quotas: [
        { name: "this API key", max: ceilings.perKey, of: ({ holder }) => holder },
        { name: "the account", max: ceilings.perAccount, of: ({ accountId }) => accountId },
        { name: "this process", max: ceilings.inAll, of: () => null },
      ],
      refusal: (quota) => `Too many event streams of ${quota} are open. Close one.`,
      lookEveryMs: limits.eventPollMs,
      onLook: () => this.#look(),
      listDead: async (keyIds) => await listDeadKeys(db, keyIds),
      onEmpty: () => {
        this.#from = null;
      },
      isDue: () => this.#isDue,
      readDue: async () => await this.#readDue(),
      onReadFailed: () => {
        this.#isDue = false;
      },
    });
  }

  /**
   * Yields the account's events from now on, or those after the one with the id `seen`, of the last hour at most. Ends when its key is
   * revoked, or for the reasons of every watch. Throws Problem 429 immediately when too many are open.
   */
  async watch(
    { keyId, accountId }: { readonly keyId: string; readonly accountId: string },
    seen: string | null,
    gone: AbortSignal,
  ): Promise<AsyncGenerator<StreamedEvent, void>> {
    await listenToAccounts(this.#db, [accountId], LISTEN_MS);
    const [now, earliest] = await Promise.all([
      findEventPlace(this.#db, 0),
      findEventPlace(this.#db, limits.eventReplayMs),
    ]);
    const after = seen === null ? now : seen > earliest ? seen : earliest;
    const watcher: EventWatcher = {
      ...newWatcher(keyId),
      accountId,
      after,
      pending: [],
      seen: new Set(),
    };
    this.#watchers.add(watcher, gone);
    if (seen !== null) hand(watcher, await this.#readAfter([accountId], after));
    return this.#watchers.events<StreamedEvent>(watcher, {
      take: () => this.#take(watcher),
      heartbeat: "unchanged",
    });
  }

  /** Ends every watch; later ones end as soon as they begin. */
  drain(): void {
    this.#watchers.drain();
  }

  /** Operators' events, whose links need the address of the dashboard, are not among an account's. */
  #take({ pending }: EventWatcher): StreamedEvent | undefined {
    for (let event = pending.shift(); event !== undefined; event = pending.shift()) {
      try {
        return { id: event.id, type: event.type, body: renderEvent(event, "") };
      } catch (error) {
        this.#log.error({ ...describeError(error), eventId: event.id }, "an event could not be rendered");
      }
    }
    return undefined;
  }

  #look(): void {
    this.#isDue = true;
    this.#watchers.read();
  }

  async #readDue(): Promise<void> {
    this.#isDue = false;
    const watchers = [...this.#watchers.all];
    const accounts = [...new Set(watchers.map(({ accountId }) => accountId))];
    if (accounts.length === 0) return;
    await this.#listen(accounts);
    const next = await findEventPlace(this.#db, LOOK_BACK_MS);
    const from = this.#from ?? next;
    const found = await this.#readAfter(accounts, from);
    for (const watcher of watchers) hand(watcher, found);
    this.#from = next > from ? next : from;
  }

  async #readAfter(accounts: readonly string[], place: string): Promise<readonly AccountEvent[]> {
    const found: AccountEvent[] = [];
    for (let after = place; ;) {
      const events = await listAccountEvents(this.#db, accounts, after, EVENTS_AT_ONCE);
      found.push(...events);
      if (events.length < EVENTS_AT_ONCE) return found;
      after = events.at(-1)?.id ?? after;
    }
  }

  async #listen(accounts: readonly string[]): Promise<void> {
    const nowMs = performance.now();
    if (nowMs < this.#listensUntilMs) return;
    await listenToAccounts(this.#db, accounts, LISTEN_MS);
    this.#listensUntilMs = nowMs + LISTEN_EVERY_MS;
  }
}

/** Gives a watcher those that are its and that it has not had. One that is too slow ends, and can continue after its last event. */
function hand(watcher: EventWatcher, found: readonly AccountEvent[]): void {
  const own = found.filter(({ accountId, id }) => accountId === watcher.accountId && id > watcher.after);
  const fresh = own.filter(({ id }) => !watcher.seen.has(id));
  watcher.seen = new Set(own.map(({ id }) => id));
  if (watcher.pending.length + fresh.length > PENDING_MAX) watcher.end.abort();
  else watcher.pending.push(...fresh);
  if (fresh.length > 0) watcher.wake();
}
