import { Worker } from "node:worker_threads";
import { load } from "cheerio";
import { validRecord, type RecordBatches } from "#domain/record.ts";
import { NodeFailure } from "./define-node.ts";
import { HTML_THREAD, type HtmlColumn, type HtmlJob, type HtmlReply } from "./html-thread.ts";
import { inBatches } from "./record-flow.ts";

const HTML_MS = 30_000;
const HTML_THREAD_MIB = 512;

/**
 * The rows of a page as records. Design, page 2, Isolation: parsed in a thread that can be killed. Measured: 64 kB of unclosed
 * `<b>` and stray `</p>` take the parser 4 s, 256 kB take it 59 s.
 */
export async function* readHtml(
  html: string,
  rows: string,
  columns: Readonly<Record<string, string>>,
  place: string,
  signal: AbortSignal,
): RecordBatches {
  const job: HtmlJob = {
    html,
    rows,
    columns: Object.entries(columns).map(([name, text]) => readColumn(name, text)),
  };
  const reply = await runJob(job, place, signal);
  if ("problem" in reply) throw new NodeFailure(`${place}: the HTML ${reply.problem}.`);
  for (const batch of inBatches(reply.rows)) {
    yield batch.map((values) =>
      validRecord(Object.fromEntries(job.columns.map(({ name }, index) => [name, values[index] ?? null]))),
    );
  }
}

/** Design, page 3: `css` (its text, trimmed), `css@attr`, or `@attr` of the row itself. `:scope` is the row itself too. */
export function readColumn(name: string, text: string): HtmlColumn {
  const match = /^(.*)@([A-Za-z_:][-A-Za-z0-9_:.]*)$/s.exec(text);
  const css = (match?.[1] ?? text).trim();
  return {
    name,
    css: css === "" || css === ":scope" ? null : css,
    attribute: match?.[2]?.toLowerCase() ?? null,
  };
}

/** Whether cheerio takes the selector. */
export function isSelector(css: string): boolean {
  try {
    load("<p></p>").root().find(css);
    return true;
  } catch {
    return false;
  }
}

/** A thread without work, kept for the next page: starting one costs 150 ms. It does not keep the process alive. */
let idle: Worker | null = null;

function runJob(job: HtmlJob, place: string, signal: AbortSignal): Promise<HtmlReply> {
  signal.throwIfAborted();
  const thread = idle ?? startThread();
  idle = null;
  thread.ref();
  return new Promise((resolve, reject) => {
    const end = (isUsable: boolean) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      thread.removeAllListeners("message").removeAllListeners("error").removeAllListeners("exit");
      // A thread that is being killed may still report that it is.
      thread.on("error", () => undefined);
      if (isUsable && idle === null) {
        idle = thread;
        thread
          .removeAllListeners("error")
          .once("error", () => forget(thread))
          .once("exit", () => forget(thread));
        thread.unref();
      } else {
        void thread.terminate();
      }
    };
    const fail = (error: unknown) => {
      end(false);
      reject(error instanceof Error ? error : new Error("The run was stopped.", { cause: error }));
    };
    const timer = setTimeout(
      () => fail(new NodeFailure(`${place}: the HTML took longer than ${HTML_MS / 1_000} s to parse.`)),
      HTML_MS,
    );
    const onAbort = () => fail(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    thread.removeAllListeners("error").removeAllListeners("exit");
    thread.once("message", (reply: HtmlReply) => {
      end(true);
      resolve(reply);
    });
    thread.once("error", (error) => {
      const isMemory = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
      fail(
        isMemory
          ? new NodeFailure(`${place}: the HTML took more than ${HTML_THREAD_MIB} MiB to parse.`)
          : error,
      );
    });
    thread.once("exit", () => fail(new NodeFailure(`${place}: the HTML could not be parsed.`)));
    thread.postMessage(job);
  });
}

function startThread(): Worker {
  return new Worker(new URL("./html-thread.ts", import.meta.url), {
    workerData: HTML_THREAD,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: HTML_THREAD_MIB },
  });
}

function forget(thread: Worker): void {
  if (idle === thread) idle = null;
}
