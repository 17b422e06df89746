import { Worker, type WorkerOptions } from "node:worker_threads";

export interface ThreadOptions extends WorkerOptions {
  /** The thread's `workerData`, to which `module` is added. */
  readonly workerData?: object;
}

/** Starts a thread that runs a module. Uses the compile cache if possible, because threads don't share the process's compiled code. */
export function startThread(module: URL, options: ThreadOptions): Worker {
  const workerData = { ...options.workerData, module: module.href };
  return new Worker(new URL("./thread-entry.mjs", import.meta.url), { ...options, workerData });
}
