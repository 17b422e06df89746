import { randomBytes } from "node:crypto";
import { describeError, type Log } from "#lib/log.ts";
import { openSession, type Database, type DatabaseSource } from "#db/connection/pool.ts";

/**
 * `changed`: a run's visible state changed. `stop`: its worker must check whether to stop. `waiting`: runs of these accounts may begin.
 * `left`: handed-back or abandoned runs of these accounts may continue.
 */
type ChangeKind = "changed" | "stop" | "waiting" | "left";
/** Presence messages of listening processes. `hello`: started listening. `here`: still listening. */
type Presence = "hello" | "here";

/** Only hints, some milliseconds after a COMMIT: the receiver reads the rows, and also polls without hints. */
export interface ChangeListener {
  readonly changed?: (runIds: readonly string[]) => void;
  readonly stop?: (runIds: readonly string[]) => void;
  /** True: the receiving process has free slots and begins them now. */
  readonly waiting?: (accountIds: readonly string[]) => boolean;
  readonly left?: (accountIds: readonly string[]) => void;
  /** Called when listening (re)starts: earlier notifications may have been missed. */
  readonly resumed?: () => void;
}

const CHANNEL = "latchkey_run";
/**
 * Notifications within this time of the last are batched: NOTIFY takes a lock that all notifying transactions of the server share. After
 * a pause there is no delay, so that a run triggered elsewhere begins immediately.
 */
const BATCH_MS = 10;
/** PostgreSQL takes payloads of less than 8,000 bytes. An id has about 32. */
const IDS_PER_PAYLOAD = 200;
/** A connection that only listens would not notice that the other end is gone (docs/decisions/0026). */
const SELF_CHECK_MS = 10_000;
/** The process's name in notifications. */
const PROCESS = /^[0-9a-f]{12}$/;
/** A process that sent a message within this time counts as listening; one that slept longer announces itself again. */
const PRESENT_MS = 3.5 * SELF_CHECK_MS;
/** Other listeners answer a hello within this time. */
const ANSWERED_MS = 2_000;
const RECONNECT_MS = 1_000;

/** How changes are announced and received. */
export type RunChanges = Pick<
  RunNotifier,
  "announce" | "notifyStop" | "notifyRunnable" | "notifyLeft" | "subscribe"
>;

/**
 * Notifies all processes of changed or runnable runs, with LISTEN and NOTIFY over one session per process, which is only open while there
 * are listeners. NOTIFY never runs inside a working transaction, where it would serialise commits. A listening process knows the other
 * listeners, and sends nothing if there are none: a NOTIFY costs about as much as a commit.
 */
export class RunNotifier {
  readonly #db: Database;
  readonly #source: DatabaseSource;
  readonly #log: Log;
  /** A process also receives its own notifications, but has already informed its listeners. */
  readonly #sender = randomBytes(6).toString("hex");
  readonly #listeners = new Set<ChangeListener>();
  readonly #waiting: Record<ChangeKind, Set<string>> = {
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
  /** Other listening processes and when they expire; null: unknown, because this process does not listen. */
  #present: Map<string, number> | null = null;
  #answeredAtMs = 0;

  constructor(db: Database, source: DatabaseSource, log: Log) {
    this.#db = db;
    this.#source = source;
    this.#log = log;
  }

  /** Call after the COMMIT of a visible change. Not awaited. */
  announce(runIds: readonly string[]): void {
    this.#tell("changed", runIds);
  }

  /** Call after the COMMIT of a change that must stop a run's execution. */
  notifyStop(runIds: readonly string[]): void {
    for (const listener of this.#listeners) listener.stop?.(runIds);
    this.#tell("stop", runIds);
  }

  /** Call after the COMMIT of a change that lets a run of the account begin: a trigger, or the end of another run. Not awaited. */
  notifyRunnable(accountIds: readonly string[]): void {
    if (accountIds.length === 0) return;
    let isTaken = false;
    for (const listener of this.#listeners) if (listener.waiting?.(accountIds) === true) isTaken = true;
    // This process begins them, so the notification is not urgent: it is batched with later ones.
    this.#tell("waiting", accountIds, isTaken ? BATCH_MS : 0);
  }

  /** Call after the COMMIT that hands a run of the account back. Not awaited. */
  notifyLeft(accountIds: readonly string[]): void {
    for (const listener of this.#listeners) listener.left?.(accountIds);
    this.#tell("left", accountIds);
  }

  /** Returns a function that stops listening. */
  subscribe(listener: ChangeListener): () => void {
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

  /** Sends pending notifications and stops listening. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    this.#listening?.abort();
    await Promise.all([this.#sending, this.#session]);
  }

  #tell(kind: ChangeKind, ids: readonly string[], inMs = 0): void {
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
        await sendRunChanges(this.#db, this.#sender, { waiting, left, stop, changed });
      } catch (error) {
        this.#log.debug(
          describeError(error),
          "notifying other processes of runs failed; they poll by themselves",
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

  /** Listens until stopped, reconnecting as needed. */
  async #listen(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#listenOnce(signal, () => (failures = 0));
      } catch (error) {
        const level = failures++ === 0 ? "warn" : "debug";
        this.#log[level](describeError(error), "listening for runs of other processes failed; retrying");
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
    // An error that occurs while nothing is awaited is reported at the end.
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
    // Regardless of its content: a process of an earlier version listens as well. A command that only sends one notification does
    // not listen.
    if (PROCESS.test(sender)) this.#present?.set(sender, performance.now() + PRESENT_MS);
    if (kind === "hello") answer();
    // Until it knew about us, it may not have sent anything.
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

/** One statement for all notifications: `<sender> <kind> <id> …`. */
export async function sendRunChanges(
  db: Database,
  sender: string,
  news: Readonly<Partial<Record<ChangeKind, readonly string[]>>>,
): Promise<void> {
  const payloads = Object.entries(news).flatMap(([kind, ids]) =>
    Array.from({ length: Math.ceil(ids.length / IDS_PER_PAYLOAD) }, (_, index) =>
      [sender, kind, ...ids.slice(index * IDS_PER_PAYLOAD, (index + 1) * IDS_PER_PAYLOAD)].join(" "),
    ),
  );
  // NOTIFY makes a transaction that would wait for the disk, between the commits that runs wait for: a hint need not survive a crash.
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
