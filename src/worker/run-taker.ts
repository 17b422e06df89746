import { admitRuns } from "#db/runs/admission.ts";
import { isLockedOut } from "#db/connection/database-errors.ts";
import { claimLeftRuns, type LeftKind } from "#db/runs/left-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import type { Clock } from "#lib/clock.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError, type Log } from "#lib/log.ts";
import { shareSlots } from "./share-slots.ts";

/** Accounts whose runs are taken at the same time. */
const ACCOUNTS_AT_ONCE = 4;
/** An account whose row is locked is retried after this time; all others continue. */
const RETRY_LOCKED_MS = 250;

export interface TakerOptions {
  readonly db: Database;
  readonly log: Log;
  readonly clock: Clock;
  /** `suspect`: it takes only quarantined runs. */
  readonly takes?: LeftKind;
  /** null: nothing may be taken now. */
  readonly workerId: () => string | null;
  /** Number of free slots. */
  readonly room: () => number;
  /** Whether it takes runs that were called to a browser. */
  readonly hasBrowser?: () => boolean;
  /** Runs in progress, by account. */
  readonly active: () => ReadonlyMap<string, number>;
  /** Begins a run, without waiting for it. */
  readonly begin: (run: ClaimedRun, workerId: string) => void;
}

/**
 * The only way for a run to begin or continue. Takes runs while there are free slots, and from each account handed-back and abandoned
 * runs before waiting ones. It is woken by every event that lets a run begin (a trigger, the end of another run, a handed-back run, a
 * lost worker, the reconciler) and takes runs for every account that may have one; later events are handled in the next round. No
 * account waits for another account's locks.
 */
export class RunTaker {
  readonly #options: TakerOptions;
  /** Accounts that may have runs to take, in round-robin order. */
  readonly #accounts = new Set<string>();
  /** Accounts that are known to have some. */
  readonly #likely = new Set<string>();
  /** Accounts that are known to have handed-back or abandoned runs. */
  readonly #left = new Set<string>();
  /** Accounts without waiting runs at the last poll: a free slot is not for them. */
  readonly #idle = new Set<string>();
  /** Accounts whose runs are being taken, with the slots reserved for them. */
  readonly #taking = new Map<string, { readonly share: number; readonly over: Promise<void> }>();
  readonly #later = new Set<() => void>();
  #turn: Promise<void> | null = null;
  /** Callbacks that wait until nothing is being taken. */
  #betweens = 0;
  #isStopped = false;

  constructor(options: TakerOptions) {
    this.#options = options;
  }

  /** These accounts may have waiting runs; `isLikely`: one was just triggered. Returns whether there is a free slot. */
  wake(accountIds: readonly string[], isLikely = false): boolean {
    for (const id of accountIds) this.#add(id, isLikely);
    this.#takeSoon();
    return !this.#isStopped && this.#betweens === 0 && this.#room() > 0;
  }

  /** Runs of these accounts were handed back or abandoned, and are already admitted. */
  wakeForLeft(accountIds: readonly string[]): void {
    for (const id of accountIds) this.#left.add(id);
    this.wake(accountIds);
  }

  /** Like wakeForLeft, later. */
  wakeForLeftIn(delayMs: number, accountId: string): void {
    this.#in(delayMs, () => this.wakeForLeft([accountId]));
  }

  /** A slot of the account became free: a waiting run may begin. */
  freed(accountId: string): void {
    this.wake(this.#idle.has(accountId) ? [] : [accountId]);
  }

  #add(accountId: string, isLikely: boolean): void {
    this.#accounts.add(accountId);
    if (isLikely) this.#likely.add(accountId);
  }

  /** Runs a callback while nothing is being taken, before the next round: all taken runs have begun by then. */
  async between(task: () => Promise<void>): Promise<void> {
    this.#betweens++;
    try {
      await this.#untilTaken();
      await task();
    } finally {
      this.#betweens--;
      this.#takeSoon();
    }
  }

  /** Stops taking runs. When it resolves, all taken runs have begun. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const callOff of this.#later) callOff();
    await this.#untilTaken();
  }

  async #untilTaken(): Promise<void> {
    await this.#turn;
    await Promise.all([...this.#taking.values()].map(async ({ over }) => await over));
  }

  /** The accounts that may have waiting runs. */
  get accountIds(): readonly string[] {
    return [...this.#accounts];
  }

  #takeSoon(): void {
    if (this.#turn !== null || !this.#isDue()) return;
    this.#turn = this.#take().finally(() => {
      this.#turn = null;
      this.#takeSoon();
    });
  }

  #isDue(): boolean {
    return !this.#isStopped && this.#betweens === 0 && this.#ready().length > 0 && this.#room() > 0;
  }

  /** Accounts in the queue. Those being processed are queued again afterwards. */
  #ready(): readonly string[] {
    if (this.#taking.size >= ACCOUNTS_AT_ONCE) return [];
    return [...this.#accounts].filter((id) => !this.#taking.has(id));
  }

  /** Unreserved slots. */
  #room(): number {
    let room = this.#options.room();
    for (const { share } of this.#taking.values()) room -= share;
    return room;
  }

  async #take(): Promise<void> {
    // After this turn of the event loop: runs that end together free their slots together.
    await new Promise((resolve) => setImmediate(resolve));
    const workerId = this.#options.workerId();
    if (workerId === null) return this.#forgetAll();
    if (!this.#isDue()) return;
    const active = new Map(this.#options.active());
    for (const [id, { share }] of this.#taking) active.set(id, (active.get(id) ?? 0) + share);
    for (const [accountId, share] of shareSlots(this.#room(), this.#ready(), active)) {
      if (this.#taking.size >= ACCOUNTS_AT_ONCE) break;
      const over = this.#takeOf(accountId, share, workerId).finally(() => {
        this.#taking.delete(accountId);
        this.#takeSoon();
      });
      this.#taking.set(accountId, { share, over });
    }
  }

  #forgetAll(): void {
    this.#accounts.clear();
    this.#likely.clear();
    this.#left.clear();
    this.#idle.clear();
  }

  async #takeOf(accountId: string, share: number, workerId: string): Promise<void> {
    // A later wake-up may be for a run that this poll does not see.
    this.#accounts.delete(accountId);
    const isLikely = this.#likely.delete(accountId);
    const isLeft = this.#left.delete(accountId);
    this.#idle.delete(accountId);
    try {
      const takes = this.#options.takes ?? "plain";
      const left = isLeft ? await this.#takeLeft(accountId, share, workerId, takes) : 0;
      if (left === share) return this.#add(accountId, isLikely);
      if (takes === "suspect") return;
      await failpoint("run.before_admit");
      await this.#admit(accountId, share - left, workerId, isLikely);
    } catch (error) {
      if (isLockedOut(error)) return this.#in(RETRY_LOCKED_MS, () => this.wake([accountId], true));
      this.#options.log.warn(
        { accountId, ...describeError(error) },
        "taking runs failed; the reconciler will do it",
      );
    }
  }

  async #takeLeft(accountId: string, share: number, workerId: string, takes: LeftKind): Promise<number> {
    await failpoint("run.before_claim");
    const runs = await claimLeftRuns(this.#options.db, accountId, workerId, share, takes);
    for (const run of runs) this.#options.begin(run, workerId);
    if (runs.length === share) this.#left.add(accountId);
    return runs.length;
  }

  async #admit(accountId: string, share: number, workerId: string, isLikely: boolean): Promise<void> {
    const { runs, isMore, mayWait } = await admitRuns(this.#options.db, accountId, workerId, share, {
      isLikely,
      hasBrowser: this.#options.hasBrowser?.() ?? true,
    });
    // Before they begin: the first one may end immediately.
    if (!mayWait) this.#idle.add(accountId);
    for (const run of runs) this.#options.begin(run, workerId);
    // There may be more runs, but the other accounts are served first.
    if (isMore || runs.length === share) this.#add(accountId, true);
  }

  #in(delayMs: number, task: () => void): void {
    if (this.#isStopped) return;
    const callOff = this.#options.clock.after(delayMs, () => {
      this.#later.delete(callOff);
      task();
    });
    this.#later.add(callOff);
  }
}
