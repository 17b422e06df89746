import { countQueuedRuns, readStoredBytes } from "#db/account-usage.ts";
import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import type { Quotas } from "#domain/quotas.ts";
import { describeError, type Log } from "#lib/log.ts";

/** The amounts that a run adds to its account's totals. */
interface Load {
  readonly runs: number;
  readonly bytes: number;
}

/** A trigger's reservation in its account's quota, until the run exists or has been refused. */
export interface Place {
  /** Reserves, once. Throws Problem 429, 422. */
  take(bytes: number): Promise<void>;
  /** `isMade`: the run exists, or may exist. Otherwise the reservation is released. */
  settle(isMade: boolean): void;
}

/** The totals of one account, as this process knows them. Both sums begin at the start of the process. */
interface Usage {
  /** The database's totals when the last count began. */
  counted: Load;
  countedAtMs: number;
  countTookMs: number;
  counting: Promise<void> | null;
  /** Reserved by triggers of this process, including those that have settled. */
  taken: Load;
  settled: Load;
  /** `settled` when the last count began: the count includes these, and perhaps none of the later ones. */
  settledAtCount: Load;
}

const NOTHING: Load = { runs: 0, bytes: 0 };
const plus = (one: Load, other: Load): Load => ({
  runs: one.runs + other.runs,
  bytes: one.bytes + other.bytes,
});
const minus = (one: Load, other: Load): Load => ({
  runs: one.runs - other.runs,
  bytes: one.bytes - other.bytes,
});

/** The share of the free quota after whose use the next count is due. */
const SHARE = 1 / 32;

/**
 * The quotas of accounts. Only the first trigger of an account, and one that would be refused, wait for a count: a process adds
 * the runs that it has accepted since the last count, and so never exceeds a quota by itself. It learns what other processes
 * accepted at the next count, which comes after a 32nd of the free quota was used, or after a minute. Near a quota, counts are at
 * least a second, and twenty times the duration of a count, apart. In that time several processes together may exceed the quota,
 * and a trigger may be refused although a place has become free.
 */
export class AccountQuotas {
  readonly #db: Database;
  readonly #quotas: Quotas;
  readonly #log: Log;
  readonly #usages = new Map<string, Usage>();

  constructor(db: Database, quotas: Quotas, log: Log) {
    this.#db = db;
    this.#quotas = quotas;
    this.#log = log;
  }

  open(accountId: string): Place {
    let taken: { readonly usage: Usage; readonly load: Load } | null = null;
    return {
      take: async (bytes) => {
        // A trigger that is retried in a separate transaction reserves again.
        if (taken !== null || (this.#quotas.queuedRuns === null && this.#quotas.storedBytes === null)) return;
        taken = await this.#take(accountId, { runs: 1, bytes });
      },
      settle: (isMade) => {
        if (taken === null) return;
        const { usage, load } = taken;
        taken = null;
        if (isMade) usage.settled = plus(usage.settled, load);
        else usage.taken = minus(usage.taken, load);
      },
    };
  }

  async #take(accountId: string, load: Load): Promise<{ readonly usage: Usage; readonly load: Load }> {
    const usage = await this.#usageOf(accountId);
    let refusal = this.#refusal(usage, load);
    if (refusal !== null && this.#mayCount(usage)) {
      await this.#count(accountId, usage);
      refusal = this.#refusal(usage, load);
    }
    if (refusal !== null) throw refusal;
    usage.taken = plus(usage.taken, load);
    if (this.#isOld(usage) && this.#mayCount(usage)) {
      this.#count(accountId, usage).catch((error: unknown) => {
        this.#log.warn(describeError(error), "counting an account's usage failed; retrying");
      });
    }
    return { usage, load };
  }

  async #usageOf(accountId: string): Promise<Usage> {
    const known = this.#usages.get(accountId);
    const usage = known ?? {
      counted: NOTHING,
      countedAtMs: -Infinity,
      countTookMs: 0,
      counting: null,
      taken: NOTHING,
      settled: NOTHING,
      settledAtCount: NOTHING,
    };
    if (!known) this.#usages.set(accountId, usage);
    if (usage.countedAtMs === -Infinity) await this.#count(accountId, usage);
    return usage;
  }

  /** Callers that need a count while one is in progress wait for that one. */
  async #count(accountId: string, usage: Usage): Promise<void> {
    usage.counting ??= this.#countNow(accountId, usage).finally(() => {
      usage.counting = null;
    });
    await usage.counting;
  }

  async #countNow(accountId: string, usage: Usage): Promise<void> {
    const { settled } = usage;
    const beganAtMs = this.#db.clock.now();
    const { queuedRuns } = this.#quotas;
    const [runs, bytes] = await Promise.all([
      queuedRuns === null ? 0 : countQueuedRuns(this.#db, accountId, queuedRuns),
      readStoredBytes(this.#db, accountId),
    ]);
    usage.counted = { runs, bytes };
    usage.settledAtCount = settled;
    usage.countedAtMs = this.#db.clock.now();
    usage.countTookMs = usage.countedAtMs - beganAtMs;
  }

  #mayCount(usage: Usage): boolean {
    if (usage.counting !== null) return true;
    const everyMs = Math.max(limits.usageCountEveryMs, limits.usageCountShare * usage.countTookMs);
    return this.#db.clock.now() - usage.countedAtMs >= everyMs;
  }

  #isOld(usage: Usage): boolean {
    if (this.#db.clock.now() - usage.countedAtMs >= limits.usageFreshMs) return true;
    const { queuedRuns, storedBytes } = this.#quotas;
    const since = minus(usage.taken, usage.settledAtCount);
    const isMuch = (quota: number | null, counted: number, added: number): boolean =>
      quota !== null && added > (quota - counted) * SHARE;
    return (
      isMuch(queuedRuns, usage.counted.runs, since.runs) ||
      isMuch(storedBytes, usage.counted.bytes, since.bytes)
    );
  }

  #refusal(usage: Usage, load: Load): Problem | null {
    const { queuedRuns, storedBytes } = this.#quotas;
    const would = plus(plus(usage.counted, minus(usage.taken, usage.settledAtCount)), load);
    if (queuedRuns !== null && would.runs > queuedRuns) return tooManyRuns(queuedRuns);
    // This also applies to a run without inputs: it would store what it reads.
    if (storedBytes !== null && would.bytes > storedBytes) return tooManyBytes(storedBytes);
    return null;
  }
}

const RETRY_AFTER_SECONDS = 5;

function tooManyRuns(quota: number): Problem {
  const message =
    `${quota} runs of this account are already waiting, which is its quota. Try again when some of them have started, or cancel some; ` +
    "the operator of the service can raise the quota.";
  return new Problem("rate_limit_exceeded", message, {
    details: [{ message, code: "queued_runs_quota" }],
    headers: { "Retry-After": String(RETRY_AFTER_SECONDS) },
  });
}

function tooManyBytes(quota: number): Problem {
  const message =
    `This account would store more than ${quota} bytes, which is its quota. Send less, or wait until older runs have been purged; ` +
    "the operator of the service can purge runs, shorten the retention, or raise the quota.";
  return new Problem("validation_error", message, { details: [{ message, code: "stored_bytes_quota" }] });
}
