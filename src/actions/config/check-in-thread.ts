import type { Worker } from "node:worker_threads";
import { limits } from "#domain/limits.ts";
import { FairQueue } from "#lib/fair-queue.ts";
import { startThread } from "#lib/start-thread.ts";
import { addedNodeFiles } from "#nodes/registry.ts";
import type { KnownConfig } from "./check-config.ts";
import {
  CHECK_THREAD,
  type CheckedSources,
  type CheckJob,
  type CheckThreadData,
  type ConfigSource,
} from "./check-sources.ts";

const WATCH_MS = 50;
/** The wall-clock limit as a multiple of the CPU limit, because much of the time is waiting for a core. */
const CLOCK_FACTOR = 30;
/** An idle thread is kept for the next check: starting one takes longer than most checks. */
const IDLE_MS = 300_000;
const START_MS = 60_000;

let idle: Worker | null = null;
let idleTimer: NodeJS.Timeout | undefined;
let isBusy = false;
const waiting = new FairQueue<() => void>();

/**
 * Runs `checkSources` in a thread that is terminated when it takes too long or too much memory, which is then the only problem reported.
 * One check at a time; callers queue. docs/decisions/0016.
 */
export async function checkInThread(
  caller: string,
  sources: readonly ConfigSource[],
  known: KnownConfig,
): Promise<CheckedSources> {
  if (isBusy) await new Promise<void>((resolve) => waiting.push(caller, resolve));
  isBusy = true;
  try {
    const thread = idle ?? (await startCheckThread());
    idle = null;
    clearTimeout(idleTimer);
    thread.ref();
    const outcome = await runJob(thread, { sources, known });
    if (typeof outcome === "string") {
      void thread.terminate();
      return {
        checked: [],
        problems: [{ file: sources[0]?.file ?? "", line: 1, column: 1, path: "", message: outcome }],
      };
    }
    keep(thread);
    return outcome;
  } finally {
    const next = waiting.take();
    isBusy = next !== undefined;
    next?.();
  }
}

async function startCheckThread(): Promise<Worker> {
  const nodeFiles = addedNodeFiles();
  const thread = startThread(new URL("./check-thread.ts", import.meta.url), {
    name: CHECK_THREAD,
    workerData: { threadOf: CHECK_THREAD, nodeFiles } satisfies CheckThreadData,
    execArgv: [],
    // An operator's own file may read its surroundings when it is loaded; nothing else in there does.
    ...(nodeFiles.length === 0 && { env: {} }),
    resourceLimits: { maxOldGenerationSizeMb: limits.configCheckMiB },
  });
  // Running out of memory is an error event; without a listener it would end the process.
  thread.on("error", () => undefined);
  thread.once("exit", () => {
    if (idle === thread) idle = null;
  });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), START_MS);
  thread.once("message", () => resolve(true)).once("exit", () => resolve(false));
  const isReady = await promise;
  clearTimeout(timer);
  if (isReady) return thread;
  void thread.terminate();
  throw new Error("The thread that checks documents can't be started.");
}

/** The result, or why the check was terminated. */
async function runJob(thread: Worker, job: CheckJob): Promise<CheckedSources | string> {
  const { promise, resolve } = Promise.withResolvers<CheckedSources | string>();
  const seconds = limits.configCheckMs / 1_000;
  const tooLong = `checking took longer than ${seconds} s of CPU time; split the documents`;
  const tooMuch = `checking took more than ${limits.configCheckMiB} MiB of memory; split the documents`;
  let cpuBeforeMs: number | null = null;
  const look = async (): Promise<void> => {
    const usage = await thread.cpuUsage().catch(() => null);
    if (usage === null) return;
    const cpuMs = (usage.user + usage.system) / 1_000;
    if (cpuMs - (cpuBeforeMs ??= cpuMs) > limits.configCheckMs) resolve(tooLong);
  };
  const watch = setInterval(() => void look(), WATCH_MS);
  const timer = setTimeout(() => resolve(tooLong), CLOCK_FACTOR * limits.configCheckMs);
  const onMessage = (answer: CheckedSources): void => resolve(answer);
  const onExit = (): void => resolve(tooMuch);
  thread.once("message", onMessage).once("exit", onExit);
  thread.postMessage(job);
  try {
    return await promise;
  } finally {
    clearInterval(watch);
    clearTimeout(timer);
    thread.off("message", onMessage).off("exit", onExit);
  }
}

function keep(thread: Worker): void {
  thread.unref();
  idle = thread;
  idleTimer = setTimeout(() => {
    idle = null;
    void thread.terminate();
  }, IDLE_MS).unref();
}
