import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "#lib/assert.ts";
import type { Secret } from "#lib/secret.ts";
import type { Gate } from "#outbound/gate.ts";
import { GateError } from "#outbound/gate-error.ts";
import type { GateProxy } from "#outbound/gate-proxy.ts";
import { BrowserError } from "./browser-error.ts";
import { guardDocuments } from "./documents.ts";
import { watchConsole } from "./console-errors.ts";
import { loadDriver } from "./driver.ts";
import { explainFailure, explainStart } from "./explain.ts";
import { fillSecret, type SecretField } from "./fill-secret.ts";
import { environmentOf, writeLauncher } from "./launcher.ts";
import { listenInNetworkOf } from "./own-network.ts";
import { takePicture, type PictureRequest } from "./picture.ts";
import { ownMemoryOf, ProcessTree, type Processes } from "./process-tree.ts";
import { admitConnection, hostsOf, mayBeDocument, type Reach } from "./reach.ts";
import { RefusedRequests, type RefusedRequest } from "./refused-requests.ts";
import type { PlaceRequest } from "./places.ts";
import { PID_FILE, type RunFolder } from "./run-folder.ts";
import { captureState, restoreState, type BrowserState, type CapturedState } from "./state.ts";
import type { PageTape } from "./tape.ts";

/** What a run wants of a browser. `signal` also ends the browser. */
export interface BrowserRequest extends Reach, PlaceRequest {
  /** A logged-in state, restored before the browser is handed over. */
  readonly state?: Secret<BrowserState> | undefined;
  /**
   * Called before each connection to one of `hosts`, with each of its origins that it may be for. If it throws, there is no
   * connection: this is where the audit log gets its entry before a credential is used.
   */
  readonly beforeConnect?: ((origin: URL) => Promise<void>) | undefined;
  /** Limit for everything, from the start of the browser; then it is ended. */
  readonly timeoutMs: number;
  /** The most that `captureState` returns, in bytes of JSON. */
  readonly stateBytesMax?: number;
  readonly tape?: PageTape | undefined;
  /** The most that pages may download together, in bytes; undefined: downloads are refused. */
  readonly downloadBytesMax?: number | undefined;
}

/** A browser with one context and one page. The caller must close it. */
export interface OpenBrowser {
  /** The first page. Only for `goto` of URLs that `mayOpen` accepts: the driver would also open `file:` and `view-source:`. */
  readonly page: Page;
  /**
   * For its events (`page` is a new window, already guarded) and `pages()`. A route of the caller's must end in
   * `route.fallback()` or `route.abort()`, because `route.continue()` would pass by the guard.
   */
  readonly context: BrowserContext;
  /** Whether a step may navigate to this URL: `http:` or `https:`, of `hosts`. */
  mayOpen(url: URL): boolean;
  /** Fills a secret into a field of a document of `hosts`. The only way for a secret into a page. Throws BrowserError. */
  fillSecret(field: Locator, secret: Secret, options: Pick<SecretField, "how" | "timeoutMs">): Promise<void>;
  /** What belongs to `hosts`: cookies, local and session storage, IndexedDB. Throws BrowserError (`state_too_large`). */
  captureState(): Promise<CapturedState>;
  /** A picture of a page of this browser; null: there is none. Throws what the driver throws. */
  takePicture(page: Page, request: PictureRequest): Promise<Buffer | null>;
  /** The last errors in the pages' consoles. They may have secrets. */
  consoleErrors(): readonly string[];
  /** Requests that were refused so far. */
  refused(): readonly RefusedRequest[];
  /** Why the browser was ended before it was closed, or null. */
  readonly failure: BrowserError | null;
  /** Our error for what the driver threw. The driver's own text may quote what was typed, and must go nowhere. */
  explain(error: unknown): BrowserError;
  /** Ends every process of the browser and removes its folder. May be called more than once; never throws. */
  close(): Promise<void>;
}

/** What a browser is opened with, besides the request. */
export interface BrowserMeans {
  readonly gate: Gate;
  /** The path of a Chromium. */
  readonly program: string;
  readonly folder: RunFolder;
  readonly sandbox: boolean;
  readonly hasOwnNetwork: boolean;
  /** Limit of all its processes together, and of each, in bytes. */
  readonly memoryBytes: number;
  readonly window?: BrowserWindow | undefined;
}

/** Shows the pages to their author. */
export interface BrowserWindow {
  /** What tells the program the display. */
  readonly environment: Readonly<Record<string, string>>;
  /** A pause before each thing that the driver does. */
  readonly slowMs: number;
}

/** A browser as its keeper sees it: looked at each second. */
export interface WatchedBrowser extends OpenBrowser {
  look(processes: Processes): void;
}

/**
 * Switches besides the driver's own (docs/decisions/0038). Each closes a way around the gate, and a test is red without it
 * (test/outbound/browser/switches.e2e.ts). Of the first two, a headless shell heeds one and a full Chromium the other.
 */
const SWITCHES = [
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
  "--site-per-process",
];
/** What Chromium asks for on its own account goes here: nowhere. */
const NOWHERE = "http://nowhere.invalid:1";
const START_MS = 30_000;
/** For the driver to see that its browser has ended. */
const CLOSE_MS = 5_000;
/** With less data, Chromium does not start. */
const PROCESS_BYTES_MIN = 536_870_912;

/** `onClosed` is called once, when nothing of the browser is left, also if it did not start. */
export async function launchBrowser(
  means: BrowserMeans,
  request: BrowserRequest,
  onClosed: () => void,
): Promise<WatchedBrowser> {
  const life = new BrowserLife(means, request, onClosed);
  try {
    await life.start();
    return life;
  } catch (error) {
    const reason = life.explain(error);
    await life.close();
    throw reason;
  }
}

class BrowserLife implements WatchedBrowser {
  readonly #means: BrowserMeans;
  readonly #request: BrowserRequest;
  readonly #onClosed: () => void;
  readonly #refused = new RefusedRequests();
  #proxy: GateProxy | null = null;
  #browser: Browser | null = null;
  #context: BrowserContext | null = null;
  #page: Page | null = null;
  #consoleErrors: () => readonly string[] = () => [];
  #tree: ProcessTree | null = null;
  #failure: BrowserError | null = null;
  #closing: Promise<void> | null = null;
  readonly #timer: NodeJS.Timeout;
  readonly #cancel = (): void => this.#end(new BrowserError("cancelled", "the run was stopped"));

  constructor(means: BrowserMeans, request: BrowserRequest, onClosed: () => void) {
    this.#means = means;
    this.#onClosed = onClosed;
    this.#request = request;
    this.#timer = setTimeout(() => {
      this.#end(new BrowserError("timeout", `the browser was not done within ${request.timeoutMs} ms`));
    }, request.timeoutMs);
    request.signal.addEventListener("abort", this.#cancel, { once: true });
  }

  async start(): Promise<void> {
    const { folder, program, sandbox, hasOwnNetwork, memoryBytes, window } = this.#means;
    if (this.#request.signal.aborted) this.#cancel();
    const { chromium } = await loadDriver();
    const processBytes = Math.max(memoryBytes, PROCESS_BYTES_MIN);
    const launcher = await writeLauncher(folder, program, { processBytes, hasOwnNetwork });
    this.#throwIfOver();
    const started = chromium.launch({
      executablePath: launcher,
      env: environmentOf(folder, window?.environment),
      artifactsDir: folder.artifacts,
      chromiumSandbox: sandbox,
      ...(window !== undefined && { headless: false, slowMo: window.slowMs }),
      proxy: { server: NOWHERE },
      args: SWITCHES,
      timeout: Math.min(START_MS, this.#request.timeoutMs),
      // Ours are handled by the service; a browser ends with its run.
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
    });
    this.#browser = await started.catch((error: unknown) => {
      throw this.#failure ?? explainStart(error, program, folder.uid);
    });
    const tree = must(this.#findTree(), "the launcher writes its pid");
    this.#throwIfOver();
    this.#browser.once("disconnected", () =>
      this.#end(new BrowserError("browser_crashed", "the browser ended by itself")),
    );
    this.#proxy = await this.#openProxy(tree);
    await this.#openContext(this.#browser, this.#proxy);
    this.#throwIfOver();
  }

  async #openProxy({ root }: ProcessTree): Promise<GateProxy> {
    const { gate, hasOwnNetwork } = this.#means;
    const policy = {
      admit: async (url: URL, isTunnel: boolean) => await this.#admit(url, isTunnel),
      refused: (url: URL) => this.#refused.add(url.origin, null),
    };
    return await gate.openProxy(policy, hasOwnNetwork ? await listenInNetworkOf(root) : undefined);
  }

  async #openContext(browser: Browser, proxy: GateProxy): Promise<void> {
    const { server, username, password } = proxy;
    const { state } = this.#request;
    const context = await browser.newContext({
      proxy: { server, username, password },
      serviceWorkers: "block",
      acceptDownloads: this.#request.downloadBytesMax !== undefined,
    });
    this.#context = context;
    this.#consoleErrors = watchConsole(context);
    const guarded = await guardDocuments(context, this.#request, proxy, this.#refused, {
      tape: this.#request.tape,
      onForeign: (origin) =>
        this.#end(
          new BrowserError("origin_refused", `a document came from ${origin}, which is not one of the hosts`),
        ),
    });
    context.on("page", (page) =>
      page.once("crash", () => this.#end(new BrowserError("browser_crashed", "the page crashed"))),
    );
    this.#page = await context.newPage();
    await guarded(this.#page);
    if (state !== undefined) await restoreState(context, this.#page, state.reveal(), this.#request.hosts);
  }

  async #admit(url: URL, isTunnel: boolean): Promise<void> {
    if (this.#request.tape?.answer !== undefined)
      throw new GateError("refused", "a recording answers: nothing is sent");
    admitConnection(this.#request, url, isTunnel);
    for (const origin of hostsOf(this.#request, url, isTunnel))
      await this.#request.beforeConnect?.(new URL(origin));
  }

  get page(): Page {
    if (this.#page === null) throw new BrowserError("page", "the browser has no page");
    return this.#page;
  }

  get context(): BrowserContext {
    if (this.#context === null) throw new BrowserError("page", "the browser has no context");
    return this.#context;
  }

  get failure(): BrowserError | null {
    return this.#failure;
  }

  mayOpen(url: URL): boolean {
    return mayBeDocument(this.#request, url);
  }

  async takePicture(page: Page, request: PictureRequest): Promise<Buffer | null> {
    return await takePicture(this.context, page, request);
  }

  consoleErrors(): readonly string[] {
    return this.#consoleErrors();
  }

  refused(): readonly RefusedRequest[] {
    return this.#refused.list();
  }

  async fillSecret(
    field: Locator,
    secret: Secret,
    options: Pick<SecretField, "how" | "timeoutMs">,
  ): Promise<void> {
    try {
      await fillSecret(secret, { field, hosts: this.#request.hosts, ...options });
    } catch (error) {
      throw this.explain(error);
    }
  }

  async captureState(): Promise<CapturedState> {
    try {
      return await captureState(this.context, this.#request);
    } catch (error) {
      throw this.explain(error);
    }
  }

  explain(error: unknown): BrowserError {
    return this.#failure ?? explainFailure(error);
  }

  /** One look at what it takes. */
  look(processes: Processes): void {
    // It is being closed: its folder goes, and it is only looked at until it is gone.
    if (this.#closing !== null) return;
    const pids = this.#tree?.look(processes) ?? [];
    const megabytes = Math.round(this.#means.memoryBytes / 1_048_576);
    if (ownMemoryOf(pids) > this.#means.memoryBytes)
      this.#end(new BrowserError("browser_memory", `the browser took more than ${megabytes} MiB of memory`));
    const { downloadBytesMax = Infinity } = this.#request;
    if (downloadBytesMax < Infinity && sizeOf(this.#means.folder.artifacts) > downloadBytesMax)
      this.#end(
        new BrowserError("download_too_large", `the page downloaded more than ${downloadBytesMax} bytes`),
      );
  }

  #throwIfOver(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  /** The first reason counts. Whatever the driver waits for ends with its process. */
  #end(reason: BrowserError): void {
    if (this.#closing !== null) return;
    this.#failure ??= reason;
    this.#findTree()?.kill();
  }

  /** Null: its first process has not been started. */
  #findTree(): ProcessTree | null {
    const file = join(this.#means.folder.path, PID_FILE);
    if (this.#tree !== null || !existsSync(file)) return this.#tree;
    const { pid } = JSON.parse(readFileSync(file, "utf8") || "{}") as { pid?: number };
    if (pid !== undefined) this.#tree = new ProcessTree(pid);
    return this.#tree;
  }

  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#request.signal.removeEventListener("abort", this.#cancel);
    this.#findTree()?.kill();
    // Its process is gone: it only forgets what it holds.
    const forgotten = this.#browser?.close().catch(() => undefined);
    await Promise.race([forgotten, sleep(CLOSE_MS, undefined, { ref: false })]);
    this.#tree?.kill();
    await this.#proxy?.close();
    await this.#means.folder.remove().catch(() => undefined);
    this.#onClosed();
  }
}

/** The bytes of the files in a folder, which may change meanwhile. */
function sizeOf(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => {
    const { size = 0 } = statSync(join(folder, name), { throwIfNoEntry: false }) ?? {};
    return sum + size;
  }, 0);
}
