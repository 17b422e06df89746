import { randomBytes } from "node:crypto";
import { describeError, type Log } from "#lib/log.ts";
import { openSession, type Database, type DatabaseSource } from "#db/connection/pool.ts";

/**
 * `changed`: something that callers see. `stop`: its worker shall look whether it must stop. `waiting`: runs of these
 * accounts may begin. `left`: runs of these accounts that were begun may go on elsewhere.
 */
type NewsKind = "changed" | "stop" | "waiting" | "left";
/** Of processes that listen, about themselves. `hello`: I have begun to. `here`: so do I, or still. */
type Presence = "hello" | "here";

/** Hints only, some milliseconds after a COMMIT: a process that gets one looks at the rows, and looks now and then without one. */
export interface NewsListener {
  readonly changed?: (runIds: readonly string[]) => void;
  readonly stop?: (runIds: readonly string[]) => void;
  /** True: the process that hears it has room for them, and begins them now. */
  readonly waiting?: (accountIds: readonly string[]) => boolean;
  readonly left?: (accountIds: readonly string[]) => void;
  /** Listening has just begun, or begun again: anything may have happened before. */
  readonly resumed?: () => void;
}

const CHANNEL = "latchkey_run";
/**
 * What comes within this of the last goes in one go: NOTIFY takes a lock that all notifying transactions of the server share.
 * After a pause nothing waits: a run that was triggered elsewhere begins at once.
 */
const BATCH_MS = 10;
/** PostgreSQL takes payloads of less than 8,000 bytes. An id has about 32. */
const IDS_PER_PAYLOAD = 200;
/** A connection that only listens would not notice that the other end is gone (docs/decisions/0026). */
const SELF_CHECK_MS = 10_000;
/** How a process names itself to the others. */
const PROCESS = /^[0-9a-f]{12}$/;
/** A process that was heard of within this may listen still; one that was asleep for longer says so when it wakes up. */
const PRESENT_MS = 3.5 * SELF_CHECK_MS;
/** Everybody else that listens answers a hello within this. */
const ANSWERED_MS = 2_000;
const RECONNECT_MS = 1_000;

/** How what has changed is told, and heard of. */
export type RunNews = Pick<
  RunNotifier,
  "announce" | "notifyStop" | "notifyRunnable" | "notifyLeft" | "subscribe"
>;

/**
 * Tells every process which runs have changed or may begin, and hears it from them: LISTEN and NOTIFY, one session a process, open only
 * while somebody listens. Never inside a transaction of work, where NOTIFY would make commits wait for each other. A process that listens
 * knows of the others that do, and tells nobody when there is none: a NOTIFY costs about as much as a checkpoint.
 */
export class RunNotifier {
  readonly #db: Database;
  readonly #source: DatabaseSource;
  readonly #log: Log;
  /** Its own notifications come back to a process; it has told its listeners already. */
  readonly #sender = randomBytes(6).toString("hex");
  readonly #listeners = new Set<NewsListener>();
  readonly #waiting: Record<NewsKind, Set<string>> = {
    changed: new Set(),
    stop: new Set(),
    waiting: new Set(),
    left: new Set(),
  };
  #sentAtMs = -Infinity;
  #sending: Promise<void> | null = null;
  #listening: AbortController | null = null;
  #session: Promise<void> = Promise.resolve();
  #closed = false;
  /** Other processes that listen, until when they count; null: this one does not listen itself, and can't know. */
  #present: Map<string, number> | null = null;
  #answeredAtMs = 0;

  constructor(db: Database, source: DatabaseSource, log: Log) {
    this.#db = db;
    this.#source = source;
    this.#log = log;
  }

  /** After the COMMIT of a change that callers can see. Nobody waits for it. */
  announce(runIds: readonly string[]): void {
    this.#tell("changed", runIds);
  }

  /** After the COMMIT of what must end the work on a run. */
  notifyStop(runIds: readonly string[]): void {
    for (const listener of this.#listeners) listener.stop?.(runIds);
    this.#tell("stop", runIds);
  }

  /** After the COMMIT of what lets a run of the account begin: its trigger, or the end of another. Nobody waits for it. */
  notifyRunnable(accountIds: readonly string[]): void {
    if (accountIds.length === 0) return;
    let isTaken = false;
    for (const listener of this.#listeners) if (listener.waiting?.(accountIds) === true) isTaken = true;
    // Begun here, they are news of no haste: they go with what follows, and not beside the claim on the same cores.
    this.#tell("waiting", accountIds, isTaken ? BATCH_MS : 0);
  }

  /** After the COMMIT of what leaves a run of the account to processes with room for it. Nobody waits for it. */
  notifyLeft(accountIds: readonly string[]): void {
    for (const listener of this.#listeners) listener.left?.(accountIds);
    this.#tell("left", accountIds);
  }

  /** Gives the way to end it. */
  subscribe(listener: NewsListener): () => void {
    this.#listeners.add(listener);
    if (this.#listening === null && !this.#closed) {
      this.#listening = new AbortController();
      const { signal } = this.#listening;
      this.#session = this.#session.then(async () => await this.#listen(signal));
    }
    return () => {
      if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return;
      this.#listening?.abort();
      this.#listening = null;
    };
  }

  /** Sends what waits, and stops listening. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    this.#listening?.abort();
    await Promise.all([this.#sending, this.#session]);
  }

  #tell(kind: NewsKind, ids: readonly string[], inMs = 0): void {
    for (const id of ids) this.#waiting[kind].add(id);
    if (ids.length > 0) this.#sending ??= this.#sendWaiting(performance.now() + inMs);
  }

  async #sendWaiting(notBeforeMs: number): Promise<void> {
    while (Object.values(this.#waiting).some((ids) => ids.size > 0)) {
      const dueMs = Math.max(this.#sentAtMs + BATCH_MS, notBeforeMs);
      const pauseMs = this.#closed ? 0 : dueMs - performance.now();
      await new Promise((resolve) => (pauseMs > 0 ? setTimeout(resolve, pauseMs) : setImmediate(resolve)));
      this.#sentAtMs = performance.now();
      const changed = takeAll(this.#waiting.changed);
      const stop = takeAll(this.#waiting.stop);
      const waiting = takeAll(this.#waiting.waiting);
      const left = takeAll(this.#waiting.left);
      for (const listener of this.#listeners) if (changed.length > 0) listener.changed?.(changed);
      if (!this.#isHeard()) continue;
      try {
        await sendRunNews(this.#db, this.#sender, { waiting, left, stop, changed });
      } catch (error) {
        this.#log.debug(
          describeError(error),
          "telling other processes about runs failed; they look by themselves",
        );
      }
    }
    this.#sending = null;
  }

  /** Whether another process may listen. */
  #isHeard(): boolean {
    const nowMs = performance.now();
    if (this.#present === null || nowMs < this.#answeredAtMs) return true;
    for (const [sender, untilMs] of this.#present) if (untilMs < nowMs) this.#present.delete(sender);
    return this.#present.size > 0;
  }

  /** Listens until told otherwise, over as many sessions as it takes. */
  async #listen(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#listenOnce(signal, () => (failures = 0));
      } catch (error) {
        const level = failures++ === 0 ? "warn" : "debug";
        this.#log[level](
          describeError(error),
          "listening for runs of other processes failed; it is tried again",
        );
      }
      if (!signal.aborted) await waitUnless(signal, RECONNECT_MS);
    }
  }

  async #listenOnce(signal: AbortSignal, onListening: () => void): Promise<void> {
    const over = Promise.withResolvers<void>();
    const session = await openSession(this.#source, {
      applicationName: "latchkey news",
      onLost: (error) => over.reject(error),
    });
    // An error that comes while nobody waits is heard at the end.
    over.promise.catch(() => undefined);
    const stop = (): void => over.resolve();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const say = async (presence: Presence): Promise<void> => {
      await session.query(`select pg_notify($1, $2)`, [CHANNEL, `${this.#sender} ${presence}`]);
    };
    const check = setInterval(() => void say("here").catch(() => undefined), SELF_CHECK_MS);
    try {
      // The session has one connection; it stays the same until it is lost.
      const client = await session.pool.connect();
      client.on("notification", ({ payload }) =>
        this.#hear(payload ?? "", () => void say("here").catch(() => undefined)),
      );
      client.release();
      this.#answeredAtMs = Infinity;
      this.#present = new Map();
      await session.query(`listen ${CHANNEL}`);
      await say("hello");
      this.#answeredAtMs = performance.now() + ANSWERED_MS;
      onListening();
      for (const listener of this.#listeners) listener.resumed?.();
      await over.promise;
    } finally {
      this.#present = null;
      clearInterval(check);
      signal.removeEventListener("abort", stop);
      await session.end();
    }
  }

  #hear(payload: string, answer: () => void): void {
    const [sender, kind, ...ids] = payload.split(" ");
    if (sender === undefined || sender === this.#sender) return;
    const isKnown = this.#present?.has(sender) ?? false;
    // Whatever it says: a process of an earlier version listens as well. A command that tells something once does not.
    if (PROCESS.test(sender)) this.#present?.set(sender, performance.now() + PRESENT_MS);
    if (kind === "hello") answer();
    // Until it knew of us, it may have told nobody.
    if (kind === "here" && !isKnown) for (const listener of this.#listeners) listener.resumed?.();
    if (kind !== "changed" && kind !== "stop" && kind !== "waiting" && kind !== "left") return;
    for (const listener of this.#listeners) listener[kind]?.(ids);
  }
}

function takeAll(ids: Set<string>): readonly string[] {
  const taken = [...ids];
  ids.clear();
  return taken;
}

/** One statement, whatever there is to tell: `<sender> <kind> <id> …`. */
export async function sendRunNews(
  db: Database,
  sender: string,
  news: Readonly<Partial<Record<NewsKind, readonly string[]>>>,
): Promise<void> {
  const payloads = Object.entries(news).flatMap(([kind, ids]) =>
    Array.from({ length: Math.ceil(ids.length / IDS_PER_PAYLOAD) }, (_, index) =>
      [sender, kind, ...ids.slice(index * IDS_PER_PAYLOAD, (index + 1) * IDS_PER_PAYLOAD)].join(" "),
    ),
  );
  // NOTIFY makes a transaction that would wait for the disk, between the commits that runs wait for: a hint needs to survive nothing.
  await db.query(
    `select set_config('synchronous_commit', 'off', true), pg_notify($1, payload) from unnest($2::text[]) as payload`,
    [CHANNEL, payloads],
  );
}

async function waitUnless(signal: AbortSignal, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
  clearTimeout(timer);
}
