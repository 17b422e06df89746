import type { BrowserContext, Page } from "playwright-core";
import { Secret } from "#lib/secret.ts";
import { BrowserError } from "./browser-error.ts";
import type { OpenBrowser } from "./open-browser.ts";

/** A locator as the driver's recorder writes it: a chain, from the page inwards. */
export interface RecordedLocator {
  readonly kind: string;
  readonly body: unknown;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly next?: RecordedLocator;
}

/** What kind of field something was typed into. */
export interface RecordedField {
  readonly type: string;
  readonly autocomplete: string;
  readonly name: string;
}

/** What a person did in a page. */
export interface RecordedAction {
  /** As the driver calls it: `navigate`, `click`, `fill`, `select`, `check`, `uncheck`, `press`, `assertVisible`, `assertText` and others. */
  readonly name: string;
  /** The window, counted from 0. */
  readonly window: number;
  /** The URL of its page when the action began. */
  readonly url: string;
  readonly locator: RecordedLocator | null;
  /** What was typed. It is only there to be kept out of the names of other elements, and goes nowhere else. */
  readonly typed: Secret | null;
  readonly field: RecordedField | null;
  /** Values of the chosen options. */
  readonly options: readonly string[];
  readonly key: string;
  /** Bits: Alt 1, Control 2, Meta 4, Shift 8. */
  readonly modifiers: number;
  readonly button: string;
  /** 0: a key, and no mouse, has brought the click about. */
  readonly clickCount: number;
  /** Of `assertText`. */
  readonly text: string;
  /** The window that it opened. */
  readonly opens: number | null;
  readonly downloads: boolean;
  /** How the person answered the dialog that it brought up. */
  readonly dialog: "accept" | "dismiss" | null;
}

export interface Recording {
  readonly actions: readonly RecordedAction[];
  /** Origins from which the pages loaded anything but documents, besides the hosts. */
  readonly resources: ReadonlySet<string>;
  /** By which control the page lets one sign out, once one is there. */
  readonly signOut: { readonly role: "button" | "link"; readonly name: string } | null;
  /** Resolves when the last window is closed, or the browser has ended. */
  readonly ended: Promise<void>;
  /** Ends the recording; what was done last is in it afterwards. */
  stop(): Promise<void>;
}

/** The driver's own recorder, which is not part of its published interface (docs/decisions/0040). */
interface Recordable {
  _startRecording?(
    options: { language: "jsonl" },
    sink: {
      actionAdded(page: Page, data: DriverAction, code: string): void;
      actionUpdated(page: Page, data: DriverAction, code: string): void;
      signalAdded(page: Page, data: DriverSignal): void;
    },
  ): Promise<void>;
  _stopRecording?(): Promise<void>;
}

interface DriverAction {
  readonly name: string;
  readonly selector?: string;
  readonly text?: string;
  readonly options?: readonly string[];
  readonly key?: string;
  readonly modifiers?: number;
  readonly button?: string;
  readonly clickCount?: number;
  readonly url?: string;
}

interface DriverSignal {
  readonly name: string;
  readonly popupPageGuid?: string;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The driver waits so long whether a second click makes a double click of the first. */
const CLICK_HELD_MS = 600;
const LOOK_MS = 2_000;
const LOOK_EVERY_MS = 500;
/** By which words pages name it. */
const SIGN_OUT =
  /sign ?out|log ?out|log ?off|abmelden|ausloggen|déconnexion|déconnecter|cerrar sesión|disconnetti|esci|uitloggen|afmelden|wyloguj|terminar sessão|sair/i;

/** Records what is done in the browser's pages. `onAction` is called when an action begins. */
export async function startRecording(
  browser: OpenBrowser,
  hosts: readonly string[],
  onAction: (action: RecordedAction) => void,
): Promise<Recording> {
  const recorder = new Recorder(browser, hosts, onAction);
  await recorder.start();
  return recorder;
}

class Recorder implements Recording {
  readonly actions: Mutable<RecordedAction>[] = [];
  readonly resources = new Set<string>();
  signOut: Recording["signOut"] = null;
  readonly ended: Promise<void>;
  readonly #browser: OpenBrowser;
  readonly #hosts: readonly string[];
  readonly #onAction: (action: RecordedAction) => void;
  readonly #windows: string[] = [];
  /** By window, every URL that it had, with the time from which on. */
  readonly #urls = new Map<string, (readonly [fromMs: number, url: string])[]>();
  /** Dialogs and their answers, in order: they come by different ways. */
  readonly #dialogs: (Mutable<RecordedAction> | null)[] = [];
  readonly #answers: boolean[] = [];
  readonly #looks = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | null = null;
  #end: () => void = () => {};

  constructor(browser: OpenBrowser, hosts: readonly string[], onAction: (action: RecordedAction) => void) {
    this.#browser = browser;
    this.#hosts = hosts;
    this.#onAction = onAction;
    this.ended = new Promise((resolve) => (this.#end = resolve));
  }

  async start(): Promise<void> {
    const { context } = this.#browser;
    const recordable: BrowserContext & Recordable = context;
    if (recordable._startRecording === undefined)
      throw new BrowserError("page", "this version of the browser's driver has no recorder");
    context.on("page", (page) => this.#watch(page));
    for (const page of context.pages()) this.#watch(page);
    context.once("close", () => this.#end());
    context.on("request", (request) => {
      const { origin = "", protocol = "" } = URL.parse(request.url()) ?? {};
      if (/^https?:$/.test(protocol) && !request.isNavigationRequest() && !this.#hosts.includes(origin))
        this.resources.add(origin);
    });
    await recordable._startRecording(
      { language: "jsonl" },
      {
        actionAdded: (page, data, code) => this.#add(page, data, code),
        actionUpdated: (page, data, code) => this.#update(page, data, code),
        signalAdded: (page, signal) => this.#signal(page, signal),
      },
    );
    this.#timer = setInterval(() => this.#keep(this.#lookForSignOut()), LOOK_EVERY_MS);
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await (this.#browser.context as BrowserContext & Recordable)._stopRecording?.().catch(() => undefined);
    await Promise.all(this.#looks);
  }

  #watch(page: Page): void {
    this.#windowOf(guidOf(page));
    this.#moved(page);
    page.on("framenavigated", (frame) => {
      if (frame === page.mainFrame()) this.#moved(page);
    });
    page.once("close", () => {
      if (this.#browser.context.pages().length === 0) this.#end();
    });
    // With a listener the driver leaves the answer to the person, who sees the dialog.
    page.on("dialog", () => {});
    this.#keep(this.#watchDialogs(page));
  }

  async #watchDialogs(page: Page): Promise<void> {
    const session = await this.#browser.context.newCDPSession(page);
    session.on("Page.javascriptDialogClosed", ({ result }) => {
      this.#answers.push(result);
      this.#matchDialogs();
    });
    await session.send("Page.enable");
  }

  #moved(page: Page): void {
    const guid = guidOf(page);
    this.#urls.set(guid, [...(this.#urls.get(guid) ?? []), [performance.now(), page.url()]]);
  }

  #windowOf(guid: string): number {
    if (!this.#windows.includes(guid)) this.#windows.push(guid);
    return this.#windows.indexOf(guid);
  }

  #add(page: Page, data: DriverAction, code: string): void {
    const guid = guidOf(page);
    const action: Mutable<RecordedAction> = {
      ...partsOf(data, code),
      window: this.#windowOf(guid),
      url: data.url ?? this.#urlOf(guid, data.name === "click" ? CLICK_HELD_MS : 0),
      field: null,
      opens: null,
      downloads: false,
      dialog: null,
    };
    this.actions.push(action);
    if (data.name === "fill" && data.selector !== undefined)
      this.#keep(this.#lookAtField(action, page, data.selector));
    this.#onAction(action);
  }

  #update(page: Page, data: DriverAction, code: string): void {
    const last = this.actions.at(-1);
    if (last === undefined || last.name !== data.name) this.#add(page, data, code);
    else Object.assign(last, partsOf(data, code));
  }

  #urlOf(guid: string, agoMs: number): string {
    const atMs = performance.now() - agoMs;
    const urls = this.#urls.get(guid) ?? [];
    return (urls.findLast(([fromMs]) => fromMs <= atMs) ?? urls[0])?.[1] ?? "";
  }

  #signal(page: Page, { name, popupPageGuid }: DriverSignal): void {
    const window = this.#windowOf(guidOf(page));
    const action = this.actions.findLast((each) => each.window === window) ?? null;
    if (name === "dialog") {
      this.#dialogs.push(action);
      this.#matchDialogs();
    }
    if (action === null) return;
    if (name === "popup" && popupPageGuid !== undefined) action.opens = this.#windowOf(popupPageGuid);
    if (name === "download") action.downloads = true;
  }

  #matchDialogs(): void {
    for (const [index, action] of this.#dialogs.entries()) {
      const answer = this.#answers[index];
      if (action !== null && answer !== undefined) action.dialog = answer ? "accept" : "dismiss";
    }
  }

  async #lookAtField(action: Mutable<RecordedAction>, page: Page, selector: string): Promise<void> {
    action.field = await page.locator(selector).first().evaluate(readField, undefined, { timeout: LOOK_MS });
  }

  /** Looked for as long as a sign-in may be in progress: afterwards the page may be closed at any time. */
  async #lookForSignOut(): Promise<void> {
    const [page] = this.#browser.context.pages();
    if (this.signOut !== null || page === undefined || this.actions.every(({ typed }) => typed === null))
      return;
    for (const role of ["button", "link"] as const) {
      const found = page.getByRole(role, { name: SIGN_OUT }).filter({ visible: true }).first();
      if ((await found.count()) === 0) continue;
      const text = (await found.textContent({ timeout: LOOK_MS })) ?? "";
      const name = SIGN_OUT.exec(text)?.[0];
      if (name !== undefined) this.signOut = { role, name };
    }
  }

  /** A page may be gone before it is looked at. */
  #keep(look: Promise<void>): void {
    const kept = look.catch(() => undefined).finally(() => this.#looks.delete(kept));
    this.#looks.add(kept);
  }
}

const guidOf = (page: Page): string => (page as unknown as { readonly _guid: string })._guid;

function partsOf(data: DriverAction, code: string) {
  return {
    name: data.name,
    locator: readLocator(code),
    typed: data.name === "fill" && data.text !== undefined ? new Secret(data.text) : null,
    options: data.options ?? [],
    key: data.key ?? "",
    modifiers: data.modifiers ?? 0,
    button: data.button ?? "left",
    clickCount: data.clickCount ?? 1,
    text: data.name === "assertText" ? (data.text ?? "") : "",
  };
}

function readLocator(code: string): RecordedLocator | null {
  const [line = ""] = code.split("\n", 1);
  if (line === "") return null;
  const { locator } = JSON.parse(line) as { readonly locator?: RecordedLocator };
  return locator ?? null;
}

/** The part of the DOM that `readField` uses: this file is checked without the types of pages. */
interface PageElement {
  getAttribute(name: string): string | null;
}

/** Runs in the page, so it uses nothing from outside. Never the field's value. */
function readField(element: unknown): RecordedField {
  const read = (name: string): string => (element as PageElement).getAttribute(name) ?? "";
  return {
    type: read("type").toLowerCase(),
    autocomplete: read("autocomplete").toLowerCase(),
    name: read("name"),
  };
}
