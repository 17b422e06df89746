/** The entry point of every thread: see `start-thread.ts`. */
import "./compile-cache.mjs";
import { flushCompileCache } from "node:module";
import { workerData } from "node:worker_threads";

await import(workerData.module);
// Now, because a thread that is terminated keeps nothing of what it has compiled.
flushCompileCache();
