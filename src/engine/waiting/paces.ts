import {
  returnThrottleSlot,
  takeThrottleSlot,
  type ThrottledNode,
  type ThrottleSlot,
} from "#db/runs/throttle.ts";
import type { Database } from "#db/connection/pool.ts";
import { findHostThrottles } from "#db/accounts.ts";
import type { HostThrottle } from "#domain/host-throttle.ts";
import { limits } from "#domain/limits.ts";
import type { Clock } from "#lib/clock.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";

/** No slot is available in time; none was taken. */
export class SlotTooFar extends Error {
  override readonly name = "SlotTooFar";
  override readonly message = "the throttle has no free moment in time";
}

export interface SlotRequest {
  /** Lower ranks go first: a run that has begun its node finishes before another one begins. */
  readonly rank: number;
  /** How long the request may wait, in milliseconds. */
  readonly withinMs: number;
  readonly signal: AbortSignal;
}

interface Waiter extends SlotRequest {
  readonly untilMs: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Schedules this process's requests under a node's throttle. It takes one slot at a time from those that all processes share; the first
 * request in the queue at the slot's time gets it, so that a run that ends in the meantime wastes no slot.
 */
class Pace {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #node: ThrottledNode;
  readonly #waiters: Waiter[] = [];
  #spacingMs = 1;
  /** The time of the taken slot; null: none is taken. */
  #slotAtMs: number | null = null;
  /** Wakes it while it waits for its slot. */
  #wake: () => void = () => {};
  #isServing = false;

  constructor(db: Database, clock: Clock, node: ThrottledNode) {
    this.#db = db;
    this.#clock = clock;
    this.#node = node;
  }

  get isIdle(): boolean {
    return !this.#isServing;
  }

  /** Throws SlotTooFar: immediately if the queue is too long, or when the deadline passes. */
  async take(spacingMs: number, given: SlotRequest): Promise<void> {
    const request = { ...given, withinMs: Math.min(given.withinMs, limits.timerMsMax) };
    this.#spacingMs = spacingMs;
    request.signal.throwIfAborted();
    if (this.#waitMs(request.rank) > request.withinMs) throw new SlotTooFar();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { ...request, untilMs: this.#clock.now() + request.withinMs, resolve, reject };
    const leave = (error: unknown): void => {
      this.#forget(waiter);
      reject(error);
    };
    const abort = (): void => leave(request.signal.reason);
    const callOff = this.#clock.after(request.withinMs, () => leave(new SlotTooFar()));
    request.signal.addEventListener("abort", abort, { once: true });
    this.#waiters.push(waiter);
    void this.#serve();
    try {
      await promise;
    } finally {
      callOff();
      request.signal.removeEventListener("abort", abort);
      this.#forget(waiter);
    }
  }

  /** The local estimate: the queue before it, and the taken slot. */
  #waitMs(rank: number): number {
    const before = this.#waiters.filter((waiter) => waiter.rank <= rank).length;
    const slotMs = this.#slotAtMs === null ? 0 : Math.max(this.#slotAtMs - this.#clock.now(), 0);
    return before * this.#spacingMs + slotMs;
  }

  #forget(waiter: Waiter): void {
    const place = this.#waiters.indexOf(waiter);
    if (place >= 0) this.#waiters.splice(place, 1);
    if (this.#waiters.length === 0) this.#wake();
  }

  /** Takes slots while requests wait. */
  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      while (this.#waiters.length > 0) await this.#serveOne();
    } finally {
      this.#isServing = false;
    }
  }

  async #serveOne(): Promise<void> {
    const spacingMs = this.#spacingMs;
    let slot: ThrottleSlot | undefined;
    try {
      const withinMs = Math.max(...this.#waiters.map(({ untilMs }) => untilMs)) - this.#clock.now();
      slot = await retryWhileLocked(
        async () => await takeThrottleSlot(this.#db, this.#node, spacingMs, Math.max(withinMs, 0)),
      );
    } catch (error) {
      return this.#rejectAll(error);
    }
    if (slot === undefined) return this.#rejectAll(new SlotTooFar());
    await this.#untilMs(this.#clock.now() + slot.waitMs);
    const next = this.#first();
    if (next !== undefined) {
      this.#forget(next);
      next.resolve();
      return;
    }
    // The next slot only comes later.
    await returnThrottleSlot(this.#db, this.#node, spacingMs, slot).catch(() => {});
  }

  /** Ends earlier when no request waits any more. */
  async #untilMs(atMs: number): Promise<void> {
    this.#slotAtMs = atMs;
    for (let leftMs = atMs - this.#clock.now(); leftMs > 0; leftMs = atMs - this.#clock.now()) {
      if (this.#waiters.length === 0) break;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const callOff = this.#clock.after(leftMs, resolve);
      await promise;
      callOff();
    }
    this.#wake = () => {};
    this.#slotAtMs = null;
  }

  #first(): Waiter | undefined {
    let first: Waiter | undefined;
    for (const waiter of this.#waiters) if (first === undefined || waiter.rank < first.rank) first = waiter;
    return first;
  }

  #rejectAll(error: unknown): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }
}

/** How long the throttles of an account's document are cached, and those of how many accounts. */
const THROTTLES_MS = 5_000;
const ACCOUNTS_MAX = 10_000;

/** The schedules of all throttled nodes and hosts in this process. */
export class Paces {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #hosts = new Map<
    string,
    { readonly untilMs: number; readonly read: Promise<readonly HostThrottle[]> }
  >();
  readonly #paces = new Map<string, Pace>();
  #ranks = 0;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** The rank of a run that begins a node now: after all that have begun. */
  newRank(): number {
    return ++this.#ranks;
  }

  /** The spacing of an account's requests to a host; null: it has no throttle. Within seconds of a change of the document. */
  async spacingOfHost(accountId: string, origin: string): Promise<number | null> {
    let known = this.#hosts.get(accountId);
    if (known === undefined || known.untilMs <= this.#clock.now()) {
      if (this.#hosts.size >= ACCOUNTS_MAX) this.#hosts.clear();
      const read = findHostThrottles(this.#db, accountId);
      known = { untilMs: this.#clock.now() + THROTTLES_MS, read };
      this.#hosts.set(accountId, known);
      // The next one asks again.
      read.catch(() => this.#hosts.delete(accountId));
    }
    return (await known.read).find((each) => each.origin === origin)?.spacingMs ?? null;
  }

  /** Waits for a slot of the node, one every `spacingMs`. Throws SlotTooFar, or the signal's reason. */
  async take(node: ThrottledNode, spacingMs: number, request: SlotRequest): Promise<void> {
    const key = lineOf(node);
    let pace = this.#paces.get(key);
    if (!pace) this.#paces.set(key, (pace = new Pace(this.#db, this.#clock, node)));
    try {
      await pace.take(spacingMs, request);
    } finally {
      if (pace.isIdle && this.#paces.get(key) === pace) this.#paces.delete(key);
    }
  }
}

/** The queue's name for a node's throttle, as in the rows of runs. */
export const lineOf = ({ blueprintId, nodeId }: ThrottledNode): string => `${blueprintId}/${nodeId}`;
