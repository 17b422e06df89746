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
/** An account whose row somebody holds is asked again after this; all others go on. */
const LOCKED_AGAIN_MS = 250;

export interface TakerOptions {
  readonly db: Database;
  readonly log: Log;
  readonly clock: Clock;
  /** `suspect`: it takes those that must be carried in quarantine, and nothing else. */
  readonly takes?: LeftKind;
  /** Null: nothing may be taken now. */
  readonly workerId: () => string | null;
  /** How many more runs there is room for. */
  readonly room: () => number;
  /** Runs under way, by account. */
  readonly carried: () => ReadonlyMap<string, number>;
  /** Begins a run. Nobody waits for it. */
  readonly begin: (run: ClaimedRun, workerId: string) => void;
}

/**
 * The one way for a run to begin, and to go on: takes runs while there is room for them, of each account those that were begun and left
 * before those that wait. It is woken by whatever lets a run begin (a trigger, the end of another run, a run that was handed back, a
 * worker that was lost, the reconciler), and takes for every account that may have one; what comes while it takes is taken next. No
 * account waits for what another one waits for.
 */
export class RunTaker {
  readonly #options: TakerOptions;
  /** Accounts that may have runs to take, in the order of their turns. */
  readonly #accounts = new Set<string>();
  /** Those of them that have some, as far as is known. */
  readonly #likely = new Set<string>();
  /** Those of which a run was left, as far as is known. */
  readonly #left = new Set<string>();
  /** Those of which none waited at the last look: a place that gets free is nobody's there. */
  readonly #idle = new Set<string>();
  /** Accounts whose runs are being taken, each with the room that is kept for it. */
  readonly #taking = new Map<string, { readonly share: number; readonly over: Promise<void> }>();
  readonly #later = new Set<() => void>();
  #turn: Promise<void> | null = null;
  /** Who waits for a moment in which nothing is taken. */
  #betweens = 0;
  #isStopped = false;

  constructor(options: TakerOptions) {
    this.#options = options;
  }

  /** These accounts may have runs that wait; `isLikely`: one was triggered just now. Gives whether there is room for one. */
  wake(accountIds: readonly string[], isLikely = false): boolean {
    for (const id of accountIds) this.#add(id, isLikely);
    this.#takeSoon();
    return !this.#isStopped && this.#betweens === 0 && this.#room() > 0;
  }

  /** Runs of these accounts were left, and have their places. */
  wakeForLeft(accountIds: readonly string[]): void {
    for (const id of accountIds) this.#left.add(id);
    this.wake(accountIds);
  }

  /** As wakeForLeft, later. */
  wakeForLeftIn(delayMs: number, accountId: string): void {
    this.#in(delayMs, () => this.wakeForLeft([accountId]));
  }

  /** A place of the account got free: whatever waits for one may begin. */
  freed(accountId: string): void {
    this.wake(this.#idle.has(accountId) ? [] : [accountId]);
  }

  #add(accountId: string, isLikely: boolean): void {
    this.#accounts.add(accountId);
    if (isLikely) this.#likely.add(accountId);
  }

  /** Does something while nothing is being taken: what was taken is begun by then. It comes before the next turn. */
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

  /** Takes no more; what was being taken is begun when this is over. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const callOff of this.#later) callOff();
    await this.#untilTaken();
  }

  async #untilTaken(): Promise<void> {
    await this.#turn;
    await Promise.all([...this.#taking.values()].map(async ({ over }) => await over));
  }

  /** The accounts that may have runs that wait. */
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

  /** Accounts that have their turn now. Those that are being taken for come again after that. */
  #ready(): readonly string[] {
    if (this.#taking.size >= ACCOUNTS_AT_ONCE) return [];
    return [...this.#accounts].filter((id) => !this.#taking.has(id));
  }

  /** Room that is nobody's yet. */
  #room(): number {
    let room = this.#options.room();
    for (const { share } of this.#taking.values()) room -= share;
    return room;
  }

  async #take(): Promise<void> {
    // With all that this turn of the event loop brings: runs that end together make room together.
    await new Promise((resolve) => setImmediate(resolve));
    const workerId = this.#options.workerId();
    if (workerId === null) return this.#forgetAll();
    if (!this.#isDue()) return;
    const carried = new Map(this.#options.carried());
    for (const [id, { share }] of this.#taking) carried.set(id, (carried.get(id) ?? 0) + share);
    for (const [accountId, share] of shareSlots(this.#room(), this.#ready(), carried)) {
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
    // A caller that wakes it from here on may know of a run that this look does not see.
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
      if (isLockedOut(error)) return this.#in(LOCKED_AGAIN_MS, () => this.wake([accountId], true));
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
    const { runs, isMore, mayWait } = await admitRuns(this.#options.db, accountId, workerId, share, isLikely);
    // Before they begin: the first of them may be over at once.
    if (!mayWait) this.#idle.add(accountId);
    for (const run of runs) this.#options.begin(run, workerId);
    // There may be more; it is the others' turn first.
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
