import { tmpdir } from "node:os";
import type { Log } from "#lib/log.ts";
import type { Gate } from "#outbound/gate.ts";
import { BrowserError } from "./browser-error.ts";
import { findLeak } from "./find-leak.ts";
import { findChromium, NO_CHROMIUM, NO_WINDOW, readVersion } from "./find-chromium.ts";
import { Places } from "./places.ts";
import {
  launchBrowser,
  type BrowserRequest,
  type BrowserWindow,
  type OpenBrowser,
  type WatchedBrowser,
} from "./open-browser.ts";
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
  /** `own`: each browser has a network in which there is the gate's proxy and nothing else. */
  readonly network: "host" | "own";
  /** For `latchkey run --headed`. */
  readonly window?: BrowserWindow | undefined;
}

/** Whether a browser could be opened here at this moment. */
export interface BrowserPlaces {
  /** Browsers that may run at once; 0: there is no Chromium that this process may start. */
  readonly most: number;
  readonly free: number;
}

/** What a first start of the program shows. */
export interface BrowserCheck {
  readonly path: string;
  readonly version: string;
  readonly hasSandbox: boolean;
  readonly hasOwnNetwork: boolean;
  /** Whether pages can send something past the gate. */
  readonly leaks: boolean;
}

export interface Browsers {
  /** The network in which they are started. */
  readonly network: BrowserSettings["network"];
  places(): Promise<BrowserPlaces>;
  /** Calls back whenever a place is free and no run of this process waits for it. */
  watchPlaces(onFreed: () => void): void;
  /** Waits for a place, and opens a browser. Throws BrowserError. */
  open(request: BrowserRequest): Promise<OpenBrowser>;
  /** Starts the program once. Throws BrowserError. Null: none is installed. */
  check(): Promise<BrowserCheck | null>;
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
  const isShown = settings.window !== undefined;
  const hasOwnNetwork = settings.network === "own";
  const find = async (): Promise<string | null> => await findChromium(settings.program, isShown);
  const places = new Places(settings.max);
  const take = async (request: BrowserRequest): Promise<readonly [folder: RunFolder, leave: () => void]> => {
    const leave = await places.enter(request);
    try {
      return [await takeRunFolder(folder, settings.uids), leave];
    } catch (error) {
      leave();
      throw error;
    }
  };
  const openOne = async (program: string, request: BrowserRequest): Promise<OpenBrowser> => {
    const [runFolder, leave] = await take(request);
    const { sandbox, memoryBytes, window } = settings;
    const means = { gate, program, sandbox, hasOwnNetwork, memoryBytes, window, folder: runFolder };
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
    network: settings.network,
    places: async () => {
      const program = await find().catch(() => null);
      return program === null ? { most: 0, free: 0 } : { most: settings.max, free: places.free };
    },
    watchPlaces: (onFreed) => {
      places.onFreed = onFreed;
    },
    open: async (request) => {
      const program = await find();
      if (program === null) throw new BrowserError("browser_missing", isShown ? NO_WINDOW : NO_CHROMIUM);
      return await openOne(program, request);
    },
    check: async () => {
      const program = await find();
      if (program === null) return null;
      const version = await readVersion(program);
      const signal = new AbortController().signal;
      const browser = await openOne(program, { hosts: [], resources: [], timeoutMs: CHECK_MS, signal });
      try {
        const leaks = await findLeak(browser.page).catch((error: unknown) => {
          throw browser.explain(error);
        });
        return { path: program, version, hasSandbox: settings.sandbox, hasOwnNetwork, leaks };
      } finally {
        await browser.close();
      }
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
