import { Worker, type WorkerOptions } from "node:worker_threads";

export interface ThreadOptions extends WorkerOptions {
  /** The thread finds it in `workerData`, with `module` besides. */
  readonly workerData?: object;
}

/** Starts a thread that runs a module, from the compile cache where that has it: threads don't share the process's. */
export function startThread(module: URL, options: ThreadOptions): Worker {
  const workerData = { ...options.workerData, module: module.href };
  return new Worker(new URL("./thread-entry.mjs", import.meta.url), { ...options, workerData });
}
