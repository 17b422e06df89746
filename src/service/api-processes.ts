import cluster, { type Worker } from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { DatabaseSource } from "#db/connection/pool.ts";
import { must } from "#lib/assert.ts";
import { describeError, type Log } from "#lib/log.ts";
import type { Server } from "./server.ts";
import { StartRefused, type Environment } from "./settings/settings.ts";

/** The same program with the api role alone: `api-process.ts`. */
const PROGRAM = fileURLToPath(new URL("../api-process.mjs", import.meta.url));
/** The pause before a process that died is replaced. */
const START_AGAIN_MS = 1_000;
/** How often the processes are told that the database is down. */
const TELL_EVERY_MS = 1_000;
/** Time between the end of the drain and the forced end of a process. */
const LEEWAY_MS = 1_000;

/** The first message to a process. It is sent over the private channel, because it has the signing key. */
export interface ApiOrder {
  /** The service's settings without the master key, which the api role must not have (docs/decisions/0013). */
  readonly environment: Environment;
  readonly source: DatabaseSource;
  /** How many processes share the port, and each ceiling. */
  readonly processes: number;
  /** From 1. One that replaces another has its number. */
  readonly number: number;
}

/** Its answer: the address that it listens on, or why it can't start. */
export type ApiReport =
  | { readonly url: string }
  | {
      readonly message: string;
      /** Of a failed listen. */
      readonly code?: string | undefined;
      readonly address?: string | undefined;
      readonly port?: number | undefined;
    };

/** Every later message to it. */
export type ApiWord = "stop" | { readonly databaseGoneForMs: number };

/**
 * Starts the api role in several processes that share one port, so that one machine's cores are used: this process accepts
 * connections and gives each to the next of them. One that dies is replaced. `close` drains all of them at once. Throws the error of
 * the first one that can't start.
 */
export async function startApiProcesses(
  order: Omit<ApiOrder, "number">,
  log: Log,
  goneForMs: () => number,
): Promise<Server> {
  cluster.setupPrimary({ exec: PROGRAM, args: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
  let isStopping = false;
  const start = async (number: number): Promise<string> => {
    const { worker, url } = startOne({ ...order, number });
    const listening = await url;
    log.info({ pid: worker.process.pid, number }, "a process of the api role was started");
    worker.once("exit", (code, signal) => {
      if (isStopping) return;
      log.error({ pid: worker.process.pid, number, code, signal }, "a process of the api role died");
      void replace(number);
    });
    return listening;
  };
  const replace = async (number: number): Promise<void> => {
    await sleep(START_AGAIN_MS, undefined, { ref: false });
    if (isStopping) return;
    await start(number).catch((error: unknown) => {
      log.error(describeError(error), "a process of the api role could not be replaced; trying again");
      void replace(number);
    });
  };
  const close = async (drainMs: number): Promise<void> => {
    isStopping = true;
    clearInterval(telling);
    await Promise.all(workers().map(async (worker) => await end(worker, drainMs)));
  };
  let wasGone = false;
  const telling = setInterval(() => {
    const databaseGoneForMs = goneForMs();
    if (databaseGoneForMs > 0 || wasGone) for (const worker of workers()) say(worker, { databaseGoneForMs });
    wasGone = databaseGoneForMs > 0;
  }, TELL_EVERY_MS);
  telling.unref();
  try {
    const urls = await Promise.all(Array.from({ length: order.processes }, (_, index) => start(index + 1)));
    return { url: must(urls[0], "a process"), close };
  } catch (error) {
    await close(0);
    throw error;
  }
}

const workers = (): readonly Worker[] =>
  Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);

/** A message to a process that is gone is lost, and nothing else. */
function say(worker: Worker, word: ApiWord | ApiOrder): void {
  if (worker.isConnected()) worker.send(word, () => {});
}

/** `url` rejects when it can't start. */
function startOne(order: ApiOrder): { readonly worker: Worker; readonly url: Promise<string> } {
  const worker = cluster.fork();
  const settled = Promise.withResolvers<string>();
  worker.once("message", (report: ApiReport) => {
    if ("url" in report) settled.resolve(report.url);
    else settled.reject(refusalOf(report));
  });
  // It may end, or not be started at all, without a word.
  const onEnd = (): void => settled.reject(new StartRefused("A process of the api role ended at its start."));
  worker.once("exit", onEnd);
  worker.once("error", onEnd);
  say(worker, order);
  return { worker, url: settled.promise };
}

/** The error that one process alone would have had: the command line says what to do about a port that is taken. */
const refusalOf = ({ message, ...listen }: Extract<ApiReport, { message: string }>): Error =>
  listen.code === undefined ? new StartRefused(message) : Object.assign(new Error(message), listen);

async function end(worker: Worker, drainMs: number): Promise<void> {
  if (worker.isDead()) return;
  const isOver = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  say(worker, "stop");
  const limit = setTimeout(() => worker.process.kill("SIGKILL"), drainMs + LEEWAY_MS);
  await isOver;
  clearTimeout(limit);
}
