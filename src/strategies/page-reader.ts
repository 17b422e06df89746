import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { OutboundError } from "#domain/http-exchange.ts";

/** What to look for in a page. */
export type PageQuery =
  | { readonly kind: "css"; readonly css: string; readonly attr: string | null }
  /** The form as it would be sent: its answer is a `PageForm` in JSON. */
  | { readonly kind: "form"; readonly css: string }
  | { readonly kind: "regex"; readonly regex: string; readonly group: number | null };

export interface PageJob {
  readonly text: string;
  readonly queries: readonly PageQuery[];
}

/** The first match of each query, or null where nothing matches. */
export type PageAnswers = readonly (string | null)[];

/**
 * 400 kB of nested `<div>` keep the HTML parser busy for 47 s; a page comes from a target that may mean harm, so it is read
 * where it can be stopped (design, page 2, Isolation).
 */
const PAGE_MS = 3_000;
const MEMORY_MIB = 256;
const THREADS_MAX = 2;

const idle: Worker[] = [];
const waiting: (() => void)[] = [];
let threads = 0;

/** Reads a page in a thread. Null: it took too much time or memory. Throws OutboundError `cancelled` when the signal aborts. */
export async function readPage(
  text: string,
  queries: readonly PageQuery[],
  signal: AbortSignal,
): Promise<PageAnswers | null> {
  while (threads >= THREADS_MAX && idle.length === 0)
    await new Promise<void>((resolve) => waiting.push(resolve));
  const thread = idle.pop() ?? (await startThread());
  thread.ref();
  const answers = await runJob(thread, { text, queries }, signal);
  if (answers === null) await thread.terminate();
  else {
    // An idle thread keeps no process alive.
    thread.unref();
    idle.push(thread);
  }
  waiting.shift()?.();
  if (signal.aborted) throw new OutboundError("cancelled", "the login was cancelled");
  return answers;
}

async function startThread(): Promise<Worker> {
  threads++;
  const thread = new Worker(new URL("./page-thread.ts", import.meta.url), {
    name: "page-reader",
    execArgv: [],
    // The thread has no use for the service's secrets.
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
  });
  // Running out of memory is an error event; without a listener it would end the process.
  thread.on("error", () => undefined);
  thread.once("exit", () => {
    threads--;
    const index = idle.indexOf(thread);
    if (index >= 0) idle.splice(index, 1);
  });
  // It says when it has loaded what it needs: on a busy machine that takes longer than a page may.
  await Promise.race([once(thread, "message"), once(thread, "exit")]).catch(() => undefined);
  return thread;
}

async function runJob(thread: Worker, job: PageJob, signal: AbortSignal): Promise<PageAnswers | null> {
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const timer = setTimeout(() => over.abort(), PAGE_MS);
  try {
    const answered = once(thread, "message", { signal: until }) as Promise<[PageAnswers]>;
    const ended = once(thread, "exit", { signal: until }).then(() => null);
    thread.postMessage(job);
    const first = await Promise.race([answered, ended]);
    return first === null ? null : first[0];
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}
