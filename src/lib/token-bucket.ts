export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

export interface Taken {
  readonly allowed: boolean;
  /** Whole tokens left. */
  readonly remaining: number;
  /** Seconds until a token is there again, rounded up; 0 when one is. */
  readonly retryAfterSeconds: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

const BUCKETS_MAX = 10_000;

/** Token buckets by name, in this process. A full bucket is forgotten: it is what an unknown one is taken for. */
export class TokenBuckets {
  readonly #buckets = new Map<string, Bucket>();
  readonly #nowMs: () => number;

  /** `nowMs` must never run backwards; the process's monotonic clock unless given. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Takes one token, if there is one. */
  take(name: string, rate: Rate): Taken {
    const bucket = this.#refill(name, rate);
    const allowed = bucket.tokens >= 1;
    if (allowed) bucket.tokens -= 1;
    this.#buckets.delete(name);
    this.#buckets.set(name, bucket);
    if (this.#buckets.size > BUCKETS_MAX) this.#forgetOldest();
    return {
      allowed,
      remaining: Math.floor(bucket.tokens),
      retryAfterSeconds: bucket.tokens >= 1 ? 0 : Math.ceil((1 - bucket.tokens) / rate.perSecond),
    };
  }

  /** Whether a token is there, without taking it. */
  has(name: string, rate: Rate): boolean {
    return this.#refill(name, rate).tokens >= 1;
  }

  #refill(name: string, rate: Rate): Bucket {
    const atMs = this.#nowMs();
    const before = this.#buckets.get(name);
    if (!before) return { tokens: rate.burst, atMs };
    const grown = before.tokens + ((atMs - before.atMs) / 1_000) * rate.perSecond;
    return { tokens: Math.min(rate.burst, grown), atMs };
  }

  /** Insertion order is order of use: the first is the one that has had the longest time to fill. */
  #forgetOldest(): void {
    const oldest = this.#buckets.keys().next().value;
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}
