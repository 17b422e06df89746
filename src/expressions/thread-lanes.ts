import { availableParallelism } from "node:os";
import { limits } from "#domain/limits.ts";
import { SupervisedThread, type KillReason } from "./supervised-thread.ts";
import { dropTask, type Binding, type Task } from "./thread-task.ts";

export interface LaneLimits {
  readonly threads: number;
  /** Limit for one evaluation. */
  readonly timeoutMs: number;
  readonly memoryMiB: number;
  readonly onKill?: ((reason: KillReason, source: string) => void) | undefined;
}

/** A thread that is started and ended as needed. */
interface OnDemandThread {
  readonly thread: SupervisedThread;
  /** Ends the thread when it has been idle for a while. */
  ending: NodeJS.Timeout | undefined;
}

/** At least two threads, so that an expression that takes a second does not block the next. More threads than processors don't help. */
const SLOW_THREADS_MIN = 2;
const SLOW_THREADS_MAX = 8;
const IDLE_MS = 10_000;
/** How long an expression that was slow is considered slow, in all runs. */
const SUSPECT_MS = 60_000;
const SUSPECTS_MAX = 1_000;
const PROVEN_MAX = 10_000;

/**
 * Schedules evaluations so that slow ones don't delay others. Everything starts in the quick lane, where an evaluation has a
 * tenth of a second. One that needs more starts again in the slow lane, as do all later evaluations of its run, and fails there
 * after the full time. The slow lane has few threads, which yield processors to all others, and takes one task of a run at a
 * time. An expression that has not yet proved to be quick does not delay those that have: while there is other work, it is tried
 * in a separate thread. docs/decisions/0016.
 */
export class ThreadLanes {
  readonly #limits: LaneLimits;
  readonly #quick: readonly SupervisedThread[];
  #trial: OnDemandThread | null = null;
  readonly #slow: OnDemandThread[] = [];
  readonly #slowMax = Math.min(SLOW_THREADS_MAX, Math.max(SLOW_THREADS_MIN, availableParallelism()));
  /** For each binding that was slow: the tasks that wait for its task in the slow lane. */
  readonly #waiting = new Map<number, Task[]>();
  readonly #underWay = new Set<number>();
  /** When each slow expression stops being considered slow, oldest entry first. */
  readonly #suspects = new Map<string, number>();
  /** When the last slow expression stops being considered slow. */
  #guardUntil = 0;
  /** Expressions that were quick, oldest entry first. */
  readonly #proven = new Set<string>();

  constructor(given: LaneLimits) {
    this.#limits = given;
    this.#quick = Array.from({ length: given.threads }, () => this.#quickThread());
  }

  submit(task: Task): void {
    if (this.#waiting.has(task.binding.id)) this.#submitSlow(task);
    else if (task.sources.some((source) => this.#isSuspect(source))) this.#submitSlow(task);
    else if (task.sources.every((source) => this.#proven.has(source))) idlest(this.#quick).submit(task);
    else this.#try(task);
  }

  release(binding: Binding): void {
    const waiting = this.#waiting.get(binding.id) ?? [];
    this.#waiting.delete(binding.id);
    for (const task of waiting) dropTask(task);
    for (const thread of this.#quick) thread.release(binding);
    for (const { thread } of this.#passing()) thread.release(binding);
  }

  async close(): Promise<void> {
    for (const each of this.#passing()) clearTimeout(each.ending);
    await Promise.all(
      [...this.#quick, ...this.#passing().map(({ thread }) => thread)].map((each) => each.close()),
    );
  }

  #passing(): readonly OnDemandThread[] {
    return this.#trial === null ? this.#slow : [this.#trial, ...this.#slow];
  }

  #quickThread(): SupervisedThread {
    return new SupervisedThread({
      ...this.#limits,
      timeoutMs: Math.min(limits.expressionQuickMs, this.#limits.timeoutMs),
      overdue: {
        taskMs: limits.expressionTaskMs,
        giveBack: (task: Task, source: string) => this.#moveToSlow(task, source),
      },
    });
  }

  /** Used in addition when another thread is busy, or when something was slow a moment ago. A quiet service has one thread. */
  #try(task: Task): void {
    const quick = idlest(this.#quick);
    const isCalm = quick.pending === 0 && this.#trial === null && performance.now() > this.#guardUntil;
    const proving: Task = {
      ...task,
      resolve: (cells) => {
        // Except those that the slow lane has answered.
        if (!cells.some(({ x }) => x) && !task.sources.some((source) => this.#isSuspect(source)))
          this.#noteProven(task.sources);
        task.resolve(cells);
      },
    };
    if (isCalm) return quick.submit(proving);
    const trial = (this.#trial ??= { thread: this.#quickThread(), ending: undefined });
    clearTimeout(trial.ending);
    trial.ending = setTimeout(() => this.#endTrial(trial), IDLE_MS).unref();
    trial.thread.submit(proving);
  }

  #endTrial(trial: OnDemandThread): void {
    if (trial.thread.pending > 0) {
      trial.ending = setTimeout(() => this.#endTrial(trial), IDLE_MS).unref();
      return;
    }
    this.#trial = null;
    void trial.thread.close();
  }

  #noteProven(sources: readonly string[]): void {
    for (const source of sources) this.#proven.add(source);
    for (const oldest of this.#proven) {
      if (this.#proven.size <= PROVEN_MAX) break;
      this.#proven.delete(oldest);
    }
  }

  #isSuspect(source: string): boolean {
    const until = this.#suspects.get(source);
    return until !== undefined && until > performance.now();
  }

  #moveToSlow(task: Task, source: string): void {
    this.#proven.delete(source);
    this.#suspects.delete(source);
    this.#guardUntil = performance.now() + SUSPECT_MS;
    this.#suspects.set(source, this.#guardUntil);
    for (const oldest of this.#suspects.keys()) {
      if (this.#suspects.size <= SUSPECTS_MAX) break;
      this.#suspects.delete(oldest);
    }
    if (task.isDropped) return;
    this.#submitSlow(task);
  }

  #submitSlow(task: Task): void {
    const { id } = task.binding;
    const waiting = this.#waiting.get(id) ?? [];
    this.#waiting.set(id, waiting);
    if (this.#underWay.has(id)) waiting.push(task);
    else this.#startSlow(task);
  }

  #startSlow(task: Task): void {
    const { id } = task.binding;
    const slow = this.#slowThread();
    this.#underWay.add(id);
    clearTimeout(slow.ending);
    const over = (): void => {
      slow.ending = setTimeout(() => this.#endIfIdle(slow), IDLE_MS).unref();
      this.#underWay.delete(id);
      const next = this.#waiting.get(id)?.shift();
      if (next !== undefined) this.#startSlow(next);
    };
    const { promise, resolve, reject } = Promise.withResolvers<Parameters<Task["resolve"]>[0]>();
    promise.then(task.resolve, task.reject).finally(over);
    slow.thread.submit({ ...task, resolve, reject });
  }

  /** An idle thread, or a new one; at the maximum number of threads, the one with the least work. */
  #slowThread(): OnDemandThread {
    const least = this.#slow.toSorted((a, b) => a.thread.pending - b.thread.pending)[0];
    if (least !== undefined && (least.thread.pending === 0 || this.#slow.length >= this.#slowMax))
      return least;
    const thread = new SupervisedThread({ ...this.#limits, overdue: null });
    const slow = { thread, ending: undefined };
    this.#slow.push(slow);
    return slow;
  }

  #endIfIdle(slow: OnDemandThread): void {
    if (slow.thread.pending > 0) return;
    this.#slow.splice(this.#slow.indexOf(slow), 1);
    void slow.thread.close();
  }
}

function idlest(threads: readonly SupervisedThread[]): SupervisedThread {
  return threads.reduce((best, thread) => (thread.pending < best.pending ? thread : best));
}
