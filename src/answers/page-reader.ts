import { once } from "node:events";
import type { Worker } from "node:worker_threads";
import { OutboundError } from "#domain/http-exchange.ts";
import { startThread } from "#lib/start-thread.ts";
import { ThreadPlaces, type PlaceHeld } from "#lib/thread-places.ts";
import { lowerPriority } from "#lib/thread-priority.ts";

/** What to look for in a page. */
export type PageQuery =
  | { readonly kind: "css"; readonly css: string; readonly attr: string | null }
  /** The page's visible text, in one line: no attributes, scripts or contents of form fields. */
  | { readonly kind: "visible" }
  /** The form as it would be submitted. The answer is a `PageForm` in JSON. */
  | { readonly kind: "form"; readonly css: string }
  | { readonly kind: "regex"; readonly regex: string; readonly group: number | null };

export interface PageJob {
  readonly text: string;
  readonly queries: readonly PageQuery[];
}

/** A thread's message when it has loaded its modules. */
export interface PageThreadReady {
  /** The kernel's name of it. */
  readonly threadId: number | null;
}

/** The first match of each query; null if nothing matches. */
export type PageAnswers = readonly (string | null)[];

/**
 * 400 kB of nested `<div>` keep the HTML parser busy for 47 s. A page may come from a malicious target, so it is read in a thread
 * that can be stopped, and slow pages don't delay other logins (docs/decisions/0016).
 */
const PAGE_MS = 1_500;
/** CPU time after which a page counts as slow. Ordinary pages need a tenth of it. */
const QUICK_MS = 300;
/** In wall-clock time a page may take this many times as long: much of it is waiting for a processor. */
const CLOCK_FACTOR = 30;
const WATCH_MS = 50;
const MEMORY_MIB = 256;
const IDLE_MAX = 2;

interface PageThread {
  readonly worker: Worker;
  /** The kernel's name of it. */
  readonly threadId: number | null;
}

const idle: PageThread[] = [];
const places = new ThreadPlaces();

/** Reads a page in a thread. Null if it took too much time or memory. Throws OutboundError `cancelled` when the signal aborts. */
export async function readPage(
  text: string,
  queries: readonly PageQuery[],
  signal: AbortSignal,
): Promise<PageAnswers | null> {
  let lane: "quick" | "slow" = "quick";
  for (;;) {
    // The signal belongs to the login.
    const place = await places.take(lane, signal, signal).catch(() => null);
    if (place === null || signal.aborted) {
      place?.release();
      throw cancelled();
    }
    try {
      const answers = await readInThread({ text, queries }, signal, place);
      if (signal.aborted) throw cancelled();
      if (answers !== "later") return answers;
      lane = "slow";
    } finally {
      place.release();
    }
  }
}

const cancelled = (): OutboundError => new OutboundError("cancelled", "the login was cancelled");

/** `later`: the page is slow, all slots for slow pages are taken, and it must start again when one is free. */
async function readInThread(
  job: PageJob,
  signal: AbortSignal,
  place: PlaceHeld,
): Promise<PageAnswers | "later" | null> {
  const thread = idle.pop() ?? (await startPageThread());
  if (thread === null) return null;
  thread.worker.ref();
  const answers = await runJob(thread, job, signal, place);
  // A thread's priority can't be raised again.
  if (Array.isArray(answers) && place.lane === "quick" && idle.length < IDLE_MAX) {
    // An idle thread keeps no process alive.
    thread.worker.unref();
    idle.push(thread);
  } else await thread.worker.terminate();
  return answers;
}

/** Null if it can't be started. */
async function startPageThread(): Promise<PageThread | null> {
  const worker = startThread(new URL("./page-thread.ts", import.meta.url), {
    name: "page-reader",
    // Selects the build of cheerio without an HTTP client of its own, which takes longer to load than all the rest.
    execArgv: ["--conditions=browser"],
    // The thread must not get the service's secrets.
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
  });
  // Running out of memory is an error event; without a listener it would end the process.
  worker.on("error", () => undefined);
  worker.once("exit", () => {
    const index = idle.findIndex((each) => each.worker === worker);
    if (index >= 0) idle.splice(index, 1);
  });
  // Wait until the thread has loaded its modules: on a busy machine that takes longer than the limit for a page.
  const ready = once(worker, "message").catch(() => null) as Promise<[PageThreadReady] | null>;
  const first = await Promise.race([ready, once(worker, "exit").then(() => null)]);
  return first === null ? null : { worker, threadId: first[0].threadId };
}

async function runJob(
  { worker, threadId }: PageThread,
  job: PageJob,
  signal: AbortSignal,
  place: PlaceHeld,
): Promise<PageAnswers | "later" | null> {
  const { promise, resolve } = Promise.withResolvers<PageAnswers | "later" | null>();
  const stop = (): void => resolve(null);
  let cpuBeforeMs: number | null = null;
  const look = async (): Promise<void> => {
    const usage = await worker.cpuUsage().catch(() => null);
    if (usage === null) return;
    const cpuMs = (usage.user + usage.system) / 1_000;
    const usedMs = cpuMs - (cpuBeforeMs ??= cpuMs);
    if (usedMs > PAGE_MS) resolve(null);
    else if (usedMs > QUICK_MS && !place.becomeSlow()) resolve("later");
    else if (place.lane === "slow") lowerPriority(threadId);
  };
  const watch = setInterval(() => void look(), WATCH_MS);
  const timer = setTimeout(stop, CLOCK_FACTOR * PAGE_MS);
  signal.addEventListener("abort", stop, { once: true });
  worker.once("message", resolve);
  worker.once("exit", stop);
  worker.postMessage(job);
  try {
    return await promise;
  } finally {
    clearInterval(watch);
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    worker.off("message", resolve).off("exit", stop);
  }
}
