import { tmpdir } from "node:os";
import type { Log } from "#lib/log.ts";
import type { Gate } from "#outbound/gate.ts";
import { BrowserError } from "./browser-error.ts";
import { findChromium, NO_CHROMIUM, readVersion } from "./find-chromium.ts";
import { launchBrowser, type BrowserRequest, type OpenBrowser, type WatchedBrowser } from "./open-browser.ts";
import { readProcesses } from "./process-tree.ts";
import { sweepRunFolders, takeRunFolder, type RunFolder, type UidRange } from "./run-folder.ts";

/** How browsers are found and limited: the LATCHKEY_BROWSER settings. */
export interface BrowserSettings {
  /** LATCHKEY_BROWSER; null: an installed one. */
  readonly program: string | null;
  /** Browsers that run at once. */
  readonly max: number;
  /** Limit of one browser, in bytes: of each process by the kernel, of all of them by a look each second. */
  readonly memoryBytes: number;
  /** Only the operator may turn it off. */
  readonly sandbox: boolean;
  readonly uids: UidRange;
}

export interface Browsers {
  /** Waits for a place, and opens a browser. Throws BrowserError. */
  open(request: BrowserRequest): Promise<OpenBrowser>;
  /** Starts the program once. Throws BrowserError. Null: none is installed. */
  check(): Promise<{ readonly path: string; readonly version: string; readonly hasSandbox: boolean } | null>;
  /** Ends browsers and removes folders that ended processes of this machine have left. */
  sweep(): Promise<void>;
  close(): Promise<void>;
}

const LOOK_EVERY_MS = 1_000;
const CHECK_MS = 30_000;

/** Nothing is loaded or looked for until a browser is needed. */
export function openBrowsers(options: {
  readonly gate: Gate;
  readonly settings: BrowserSettings;
  readonly log: Log;
  /** Where the browsers' folders are; every user must be able to enter it. */
  readonly folder?: string;
}): Browsers {
  const { gate, settings, log, folder = tmpdir() } = options;
  const open = new Watch();
  const places = new Places(settings.max);
  const take = async ({
    signal,
    whileWaiting,
  }: BrowserRequest): Promise<readonly [folder: RunFolder, leave: () => void]> => {
    const leave = await places.enter(signal, whileWaiting);
    try {
      return [await takeRunFolder(folder, settings.uids), leave];
    } catch (error) {
      leave();
      throw error;
    }
  };
  const openOne = async (program: string, request: BrowserRequest): Promise<OpenBrowser> => {
    const [runFolder, leave] = await take(request);
    const { sandbox, memoryBytes } = settings;
    const means = { gate, program, sandbox, memoryBytes, folder: runFolder };
    let browser: WatchedBrowser | null = null;
    browser = await launchBrowser(means, request, () => {
      // Null: it did not start.
      if (browser !== null) open.delete(browser);
      leave();
    });
    open.add(browser);
    return browser;
  };
  return {
    open: async (request) => {
      const program = await findChromium(settings.program);
      if (program === null) throw new BrowserError("browser_missing", NO_CHROMIUM);
      return await openOne(program, request);
    },
    check: async () => {
      const program = await findChromium(settings.program);
      if (program === null) return null;
      const version = await readVersion(program);
      const signal = new AbortController().signal;
      const browser = await openOne(program, { hosts: [], resources: [], timeoutMs: CHECK_MS, signal });
      await browser.close();
      return { path: program, version, hasSandbox: settings.sandbox };
    },
    sweep: async () => {
      const removed = await sweepRunFolders(folder);
      if (removed > 0) log.info({ removed }, "swept folders of browsers that no process uses");
    },
    close: async () => await open.close(),
  };
}

/** The browsers that are open, looked at each second while there are any. */
class Watch {
  readonly #open = new Set<WatchedBrowser>();
  #timer: NodeJS.Timeout | null = null;

  add(browser: WatchedBrowser): void {
    this.#open.add(browser);
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
  }

  delete(browser: WatchedBrowser): void {
    this.#open.delete(browser);
    if (this.#open.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map(async (browser) => await browser.close()));
  }

  #look(): void {
    const processes = readProcesses();
    for (const browser of this.#open) browser.look(processes);
  }
}

/** Places that are taken in the order of asking. */
class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves with the function that gives the place back, which may be called more than once. */
  async enter(
    signal: AbortSignal,
    whileWaiting: BrowserRequest["whileWaiting"] = async (wait) => await wait(),
  ): Promise<() => void> {
    if (signal.aborted) throw new BrowserError("cancelled", "the run was stopped");
    if (this.#free > 0) this.#free--;
    else await whileWaiting(async () => await this.#wait(signal));
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    };
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const giveUp = (): void => {
      const at = this.#waiting.indexOf(turn.resolve);
      if (at >= 0) this.#waiting.splice(at, 1);
      turn.reject(new BrowserError("cancelled", "the run was stopped while it waited for a browser"));
    };
    this.#waiting.push(turn.resolve);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }
}
