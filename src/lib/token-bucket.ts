export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

export interface Taken {
  readonly allowed: boolean;
  /** Remaining whole tokens. */
  readonly remaining: number;
  /** Seconds until a token is available, rounded up; 0: now. */
  readonly retryAfterSeconds: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

const BUCKETS_MAX = 10_000;

/**
 * Token buckets by name, in this process. Full buckets are dropped, because unknown ones count as full. The part of a name before the first
 * slash is its store, and each store has its own capacity: a flood of addresses can't evict keys or operators.
 */
export class TokenBuckets {
  readonly #stores = new Map<string, Map<string, Bucket>>();
  readonly #nowMs: () => number;
  readonly #processes: number;

  /**
   * `nowMs` must be monotonic; default: the process's monotonic clock. `processes`: so many processes serve the same callers, and each
   * allows its part of a rate.
   */
  constructor(nowMs: () => number = () => performance.now(), processes = 1) {
    this.#nowMs = nowMs;
    this.#processes = processes;
  }

  /** Takes a token, if available. */
  take(name: string, whole: Rate): Taken {
    const rate = this.#partOf(whole);
    const store = this.#storeOf(name);
    const bucket = this.#refill(store, name, rate);
    const allowed = bucket.tokens >= 1;
    if (allowed) bucket.tokens -= 1;
    store.delete(name);
    store.set(name, bucket);
    if (store.size > BUCKETS_MAX) forgetOldest(store);
    return {
      allowed,
      remaining: Math.floor(bucket.tokens),
      retryAfterSeconds: bucket.tokens >= 1 ? 0 : Math.ceil((1 - bucket.tokens) / rate.perSecond),
    };
  }

  /** Whether a token is available, without taking it. */
  has(name: string, rate: Rate): boolean {
    return this.#refill(this.#storeOf(name), name, this.#partOf(rate)).tokens >= 1;
  }

  #partOf(rate: Rate): Rate {
    if (this.#processes === 1) return rate;
    return {
      perSecond: rate.perSecond / this.#processes,
      burst: Math.max(1, Math.floor(rate.burst / this.#processes)),
    };
  }

  #storeOf(name: string): Map<string, Bucket> {
    const kind = name.slice(0, Math.max(name.indexOf("/"), 0));
    const store = this.#stores.get(kind) ?? new Map<string, Bucket>();
    this.#stores.set(kind, store);
    return store;
  }

  #refill(store: ReadonlyMap<string, Bucket>, name: string, rate: Rate): Bucket {
    const atMs = this.#nowMs();
    const before = store.get(name);
    if (!before) return { tokens: rate.burst, atMs };
    const grown = before.tokens + ((atMs - before.atMs) / 1_000) * rate.perSecond;
    return { tokens: Math.min(rate.burst, grown), atMs };
  }
}

/** Insertion order is order of use: the first bucket has had the longest time to fill. */
function forgetOldest(store: Map<string, Bucket>): void {
  const oldest = store.keys().next().value;
  if (oldest !== undefined) store.delete(oldest);
}
