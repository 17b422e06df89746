import type { Worker } from "node:worker_threads";
import { CONFINED } from "#lib/confined-thread.ts";
import { startThread } from "#lib/start-thread.ts";
import { ThreadPlaces, type PlaceHeld } from "#lib/thread-places.ts";
import { lowerPriority } from "#lib/thread-priority.ts";
import { NodeFailure } from "#nodes/define-node.ts";
import { PARSE_THREAD, type ParseJob, type ParseReply, type ParseThreadData } from "./parse-jobs.ts";

/** The CPU time limit of a file, and the additional time for each MB. Ordinary files need a fifth of it. */
const PARSE_MS = 1_500;
const PARSE_MS_PER_MB = 500;
const PARSE_MS_MAX = 30_000;
/** CPU time after which a file counts as slow, so that others may start. */
const QUICK_MS = 500;
const THREAD_MIB = 512;
/** In wall-clock time a file may take this many times as long: much of it is waiting for a processor. */
const CLOCK_FACTOR = 30;
/** A thread's memory outside its heap (decompressed bytes) has no limit of its own, so it is measured this often. */
const WATCH_MS = 50;
const THREAD_AND_BYTES_MIB = 768;
const MIB = 1_048_576;

/**
 * Idle threads are kept for the next jobs of any account, because starting one takes 150 ms. They don't keep the process alive.
 * Parsers of binary formats are large and a common target of malicious files, so their threads are ended after one file.
 */
const idle: Worker[] = [];
const IDLE_MAX = 2;
const places = new ThreadPlaces();
/** Where each thread stores the kernel's id for it. */
const threadIds = new WeakMap<Worker, Int32Array>();

/**
 * docs/decisions/0016: parsing runs in a thread that can be killed. `what` is the subject of messages: `the HTML`. Measured: the
 * HTML parser takes 4 s for 64 kB of unclosed `<b>` and stray `</p>`, and 59 s for 256 kB.
 */
export async function runParseJob(
  job: ParseJob,
  what: string,
  signal: AbortSignal,
): Promise<Exclude<ParseReply, { problem: string }>> {
  signal.throwIfAborted();
  let lane: "quick" | "slow" = "quick";
  for (;;) {
    // The signal belongs to the run or one of its nodes.
    const place = await places.take(lane, signal, signal);
    try {
      signal.throwIfAborted();
      const reply = await runInThread(job, what, signal, place);
      if (reply !== null && "problem" in reply) throw new NodeFailure(`${what} ${reply.problem}.`);
      if (reply !== null) return reply;
      lane = "slow";
    } finally {
      place.release();
    }
  }
}

/** Null: the file is slow, all slots for slow files are taken, and it must start again when one is free. */
async function runInThread(
  job: ParseJob,
  what: string,
  signal: AbortSignal,
  place: PlaceHeld,
): Promise<ParseReply | null> {
  const thread = isShared(job)
    ? (idle.pop() ?? startParseThread(PARSE_MODULE, WITHOUT_CLIENT))
    : startParseThread();
  thread.ref();
  const timeMs = timeOf(job);
  return await new Promise<ParseReply | null>((resolve, reject) => {
    const end = (isUsable: boolean) => {
      clearTimeout(timer);
      clearInterval(watch);
      signal.removeEventListener("abort", onAbort);
      // A thread's priority can't be raised again.
      release(thread, isUsable && place.lane === "quick" && isShared(job));
    };
    const fail = (error: unknown) => {
      end(false);
      reject(error instanceof Error ? error : new Error("The run was stopped.", { cause: error }));
    };
    const overMemory = (mib: number) => fail(new NodeFailure(`${what} took more than ${mib} MiB to parse.`));
    const overTime = () => fail(new NodeFailure(`${what} took longer than ${timeMs / 1_000} s to parse.`));
    const timer = setTimeout(overTime, CLOCK_FACTOR * timeMs);
    let cpuBeforeMs: number | null = null;
    const look = (cpuMs: number | null): void => {
      if (cpuMs === null) return;
      const usedMs = cpuMs - (cpuBeforeMs ??= cpuMs);
      if (usedMs > timeMs) overTime();
      else if (usedMs > QUICK_MS && !place.becomeSlow()) {
        end(false);
        resolve(null);
      } else if (place.lane === "slow") lowerThreadPriority(thread);
    };
    const watch = setInterval(() => {
      void cpuMsOf(thread).then(look);
      void bytesOf(thread).then((bytes) => {
        if (bytes > THREAD_AND_BYTES_MIB * MIB) overMemory(THREAD_AND_BYTES_MIB);
      });
    }, WATCH_MS);
    const onAbort = () => fail(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    thread.removeAllListeners("error").removeAllListeners("exit");
    thread.once("message", (answer: ParseReply) => {
      end(true);
      resolve(answer);
    });
    thread.once("error", (error) => {
      const isMemory = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
      if (isMemory) overMemory(THREAD_MIB);
      else fail(error);
    });
    thread.once("exit", () => fail(new NodeFailure(`${what} could not be parsed.`)));
    thread.postMessage(job);
  });
}

const isShared = ({ format }: ParseJob): boolean => format !== "xlsx" && format !== "pdf";

function timeOf(job: ParseJob): number {
  const bytes = "text" in job ? job.text.length : job.bytes.byteLength;
  return Math.min(PARSE_MS_MAX, PARSE_MS + Math.ceil(bytes / 1_000_000) * PARSE_MS_PER_MB);
}

/** CPU time, so that a thread on a busy machine is not mistaken for one that hangs; null while it is not available. */
async function cpuMsOf(thread: Worker): Promise<number | null> {
  const usage = await thread.cpuUsage().catch(() => null);
  return usage && (usage.user + usage.system) / 1_000;
}

/** 0 for a thread that has just ended. */
async function bytesOf(thread: Worker): Promise<number> {
  const heap = await thread.getHeapStatistics().catch(() => null);
  return heap === null ? 0 : heap.used_heap_size + heap.external_memory;
}

function release(thread: Worker, isUsable: boolean): void {
  thread.removeAllListeners("message").removeAllListeners("error").removeAllListeners("exit");
  // A thread that is being killed may still report an error.
  thread.on("error", () => undefined);
  if (!isUsable || idle.length >= IDLE_MAX) {
    void thread.terminate();
    return;
  }
  idle.push(thread);
  thread
    .removeAllListeners("error")
    .once("error", () => forget(thread))
    .once("exit", () => forget(thread));
  thread.unref();
}

const PARSE_MODULE = new URL("./parse-thread.ts", import.meta.url);
/** Selects the build of cheerio without an HTTP client of its own, which takes longer to load than all the rest. */
const WITHOUT_CLIENT = ["--conditions=browser"];

/** `module`: the thread's main module. */
export function startParseThread(module = PARSE_MODULE, options: readonly string[] = []): Worker {
  const threadId = new Int32Array(new SharedArrayBuffer(4));
  const thread = startThread(module, {
    workerData: { threadOf: PARSE_THREAD, threadId } satisfies ParseThreadData,
    env: CONFINED.env,
    argv: [...CONFINED.argv],
    execArgv: [...CONFINED.execArgv, ...options],
    resourceLimits: { maxOldGenerationSizeMb: THREAD_MIB },
  });
  threadIds.set(thread, threadId);
  return thread;
}

/** Repeated at each look, because a thread that has just started has no id yet. */
function lowerThreadPriority(thread: Worker): void {
  const threadId = threadIds.get(thread);
  lowerPriority((threadId && Atomics.load(threadId, 0)) || null);
}

function forget(thread: Worker): void {
  const index = idle.indexOf(thread);
  if (index >= 0) idle.splice(index, 1);
}
