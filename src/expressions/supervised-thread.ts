import { setImmediate } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { NotJson } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { assert, must } from "#lib/assert.ts";
import { startThread } from "#lib/start-thread.ts";
import { tookTooLong } from "./failure-reason.ts";
import { CLOCK_FACTOR } from "./time-limit.ts";
import { PROGRESS_BYTES, Progress } from "./thread-messages.ts";
import type { Cell, FromThread, ThreadData, ToThread } from "./thread-messages.ts";
import { dropTask, failTask } from "./thread-task.ts";
import type { Binding, Task } from "./thread-task.ts";

/** Why a thread was killed or died: too much time, too much memory, or a crash. */
export type KillReason = "time" | "memory" | "crash";

export interface ThreadLimits {
  readonly timeoutMs: number;
  readonly memoryMiB: number;
  /** Called with the expression that killed the thread, for a log. */
  readonly onKill?: ((reason: KillReason, source: string) => void) | undefined;
  /**
   * Null: an evaluation that takes too long fails. Otherwise its task is returned, as is a task that used more than `taskMs` of
   * the thread's CPU time.
   */
  readonly overdue: {
    readonly taskMs: number;
    readonly giveBack: (task: Task, source: string) => void;
  } | null;
}

const WATCH_MS = 50;
/** The evaluation's own time limit comes first; this is for steps that don't look at the clock. */
const GRACE_FACTOR = 1.25;
/**
 * V8 ends the whole process when one allocation far exceeds its limit, so that limit is well above ours. Measurements include
 * garbage, so a thread is ended halfway between the two.
 */
const HEADROOM_MIB = 512;
/** How many times its limit a thread may go without reporting. */
const SILENT_FACTOR = 4;
/** Bindings are kept in a thread while they are in use, and while their JSON text takes at most this share of its memory. */
const BINDINGS_SHARE = 1 / 16;
const STARTS_MAX = 3;
const MIB = 1_048_576;

interface Running {
  readonly worker: Worker;
  readonly progress: Int32Array;
  /** Bindings that the thread has, least recently used first. */
  readonly bindings: Map<number, Binding>;
  bindingCharacters: number;
  /** How often the watch has seen this tick, and the CPU time that the thread reported at the first and the last look. */
  watched: Watched;
}

interface Watched {
  readonly ticks: number;
  looks: number;
  firstCpuMs: number | null;
  lastCpuMs: number | null;
}

/** A worker thread that is started on demand, ended when it hangs or uses too much memory, and then replaced. */
export class SupervisedThread {
  readonly #limits: ThreadLimits;
  readonly #tasks = new Map<number, Task>();
  readonly #ending = new Set<Promise<unknown>>();
  #running: Running | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(limits: ThreadLimits) {
    this.#limits = limits;
  }

  get pending(): number {
    return this.#tasks.size;
  }

  submit(task: Task): void {
    if (this.#closed) return task.reject(closedError());
    this.#tasks.set(task.id, task);
    this.#dispatch(task);
  }

  /** Drops the variables. Tasks that still need them are rejected; the thread finishes only its current evaluation. */
  release(binding: Binding): void {
    for (const task of this.#tasks.values()) if (task.binding.id === binding.id) dropTask(task);
    this.#forget(binding);
  }

  #forget(binding: Binding): void {
    const running = this.#running;
    if (running?.bindings.delete(binding.id) !== true) return;
    running.bindingCharacters -= binding.payload.length;
    post(running.worker, { kind: "release", id: binding.id });
  }

  /** Ends the thread. Pending tasks are rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#running?.worker;
    this.#running = undefined;
    for (const task of [...this.#tasks.values()]) {
      this.#finish(task);
      task.reject(closedError());
    }
    await Promise.all([...this.#ending, worker?.terminate()]);
  }

  #dispatch(task: Task): void {
    if (task.isDropped) {
      this.#finish(task);
      return;
    }
    const running = (this.#running ??= this.#start());
    this.#sendBinding(running, task.binding);
    const { id, sources, rows, rootText } = task;
    post(running.worker, { kind: "task", id, binding: task.binding.id, sources, rows, rootText });
    running.worker.ref();
    this.#timer ??= setInterval(() => this.#watch(), WATCH_MS).unref();
  }

  #sendBinding(running: Running, binding: Binding): void {
    const known = running.bindings.delete(binding.id);
    running.bindings.set(binding.id, binding);
    if (known) return;
    post(running.worker, { kind: "bind", id: binding.id, payload: binding.payload });
    running.bindingCharacters += binding.payload.length;
    const charactersMax = this.#limits.memoryMiB * MIB * BINDINGS_SHARE;
    if (running.bindingCharacters <= charactersMax) return;
    const inUse = new Set([...this.#tasks.values()].map((task) => task.binding.id));
    for (const held of [...running.bindings.values()]) {
      if (running.bindingCharacters <= charactersMax) return;
      if (!inUse.has(held.id)) this.#forget(held);
    }
  }

  #start(): Running {
    const shared = new SharedArrayBuffer(PROGRESS_BYTES);
    const { timeoutMs, memoryMiB, overdue } = this.#limits;
    const taskMs = overdue?.taskMs ?? null;
    const worker = startThread(new URL("./expression-thread.ts", import.meta.url), {
      workerData: {
        progress: shared,
        timeoutMs,
        taskMs,
        isLowPriority: overdue === null,
      } satisfies ThreadData,
      // The thread gets nothing of the host's environment.
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: memoryMiB + HEADROOM_MIB },
    });
    const progress = new Int32Array(shared);
    const watched = { ticks: 0, looks: 0, firstCpuMs: null, lastCpuMs: null };
    const running: Running = { worker, progress, bindings: new Map(), bindingCharacters: 0, watched };
    worker.on("message", (message: FromThread) => this.#answered(message));
    // An error event is followed by an exit event.
    let cause: (Error & { code?: unknown }) | undefined;
    worker.on("error", (error: Error) => (cause = error));
    worker.on("exit", () => {
      this.#died(running, cause?.code === "ERR_WORKER_OUT_OF_MEMORY" ? "memory" : "crash", cause);
    });
    return running;
  }

  #answered(message: FromThread): void {
    const task = this.#tasks.get(message.id);
    if (task === undefined) return;
    this.#finish(task);
    if ("cells" in message) void readCells(message).then(task.resolve, task.reject);
    else if ("malformed" in message) task.reject(new NotJson());
    else this.#giveBack(task, message.overdue);
  }

  #giveBack(task: Task, source: number): void {
    const { overdue } = this.#limits;
    assert(overdue !== null, "the thread was told that tasks may be overdue");
    overdue.giveBack(task, must(task.sources[source], "source"));
  }

  #finish(task: Task): void {
    this.#tasks.delete(task.id);
    if (this.#tasks.size > 0) return;
    this.#running?.worker.unref();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Checks whether the thread is still at the same evaluation. Counts checks, because a busy main thread misses some. */
  #watch(): void {
    const running = this.#running;
    if (running === undefined) return;
    const ticks = Atomics.load(running.progress, Progress.ticks);
    const idle = Atomics.load(running.progress, Progress.task) === 0;
    if (idle || ticks !== running.watched.ticks) {
      running.watched = { ticks, looks: 0, firstCpuMs: null, lastCpuMs: null };
      return;
    }
    running.watched.looks += 1;
    if (this.#isOverTime(running.watched)) this.#died(running, "time", undefined);
    else {
      void this.#watchMemory(running);
      void this.#watchCpu(running, running.watched);
    }
  }

  /** Judges by the thread's CPU time. A thread that doesn't report it is in a step that can't be interrupted, and is given less time. */
  #isOverTime({ looks, firstCpuMs, lastCpuMs }: Watched): boolean {
    const limitMs = this.#limits.timeoutMs * GRACE_FACTOR;
    const seenMs = looks * WATCH_MS;
    if (seenMs <= limitMs) return false;
    if (firstCpuMs === null || lastCpuMs === null) return seenMs > SILENT_FACTOR * limitMs;
    return lastCpuMs - firstCpuMs > limitMs || seenMs > CLOCK_FACTOR * limitMs;
  }

  async #watchCpu(running: Running, watched: Watched): Promise<void> {
    const usage = await running.worker.cpuUsage().catch(() => null);
    if (usage === null) return;
    watched.lastCpuMs = (usage.user + usage.system) / 1_000;
    watched.firstCpuMs ??= watched.lastCpuMs;
  }

  async #watchMemory(running: Running): Promise<void> {
    const heap = await running.worker.getHeapStatistics().catch(() => undefined);
    if (heap === undefined) return;
    const used = heap.used_heap_size + heap.external_memory;
    if (used > (this.#limits.memoryMiB + HEADROOM_MIB / 2) * MIB) this.#died(running, "memory", undefined);
  }

  /** Ends a thread, fails or returns its current task, and passes all others to a new thread. */
  #died(dead: Running, reason: KillReason, cause: Error | undefined): void {
    if (dead !== this.#running) return;
    this.#running = undefined;
    const end: Promise<unknown> = dead.worker.terminate().finally(() => this.#ending.delete(end));
    this.#ending.add(end);
    const id = Atomics.load(dead.progress, Progress.task);
    const task = this.#tasks.get(id);
    // An unknown id belongs to a task that was released.
    if (task === undefined && id === 0) this.#countStarts(cause);
    if (task !== undefined) this.#endTask(task, Atomics.load(dead.progress, Progress.cell), reason);
    for (const left of [...this.#tasks.values()]) this.#dispatch(left);
  }

  #endTask(task: Task, place: number, reason: KillReason): void {
    this.#finish(task);
    const column = Math.max(0, place) % task.sources.length;
    if (reason === "time" && this.#limits.overdue !== null) {
      this.#giveBack(task, column);
      return;
    }
    this.#limits.onKill?.(reason, must(task.sources[column], "source"));
    failTask(task, place, this.#reasonText(reason));
  }

  #reasonText(reason: KillReason): string {
    if (reason === "time") return tookTooLong(this.#limits.timeoutMs);
    if (reason === "memory") return `needed more than ${this.#limits.memoryMiB} MiB of memory`;
    return "crashed the expression thread";
  }

  /** The thread died before or between evaluations: perhaps it can't start at all. */
  #countStarts(cause: Error | undefined): void {
    for (const task of [...this.#tasks.values()]) {
      if (++task.attempts < STARTS_MAX) continue;
      this.#finish(task);
      task.reject(new Error("the expression thread can't run", { cause }));
    }
  }
}

function post(worker: Worker, message: ToThread): void {
  worker.postMessage(message);
}

function closedError(): Error {
  return new Error("the expression evaluator is closed");
}

/** Yields to other work between the parts of a long list. */
async function readCells({
  cells: text,
  lists,
}: Extract<FromThread, { cells: string }>): Promise<readonly Cell[]> {
  const cells = JSON.parse(text) as Cell[];
  for (const { cell, parts } of lists) {
    const items: Json[] = [];
    for (const part of parts) {
      for (const item of JSON.parse(part) as readonly Json[]) items.push(item);
      await setImmediate();
    }
    cells[cell] = { v: items };
  }
  return cells;
}
