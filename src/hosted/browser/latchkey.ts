// The widget that customers' pages load: it creates the frame and communicates only with it. A separate script without imports,
// so that its bytes can be pinned (Subresource Integrity). docs/embedded.md and docs/decisions/0019.
import type { AnyEvent, EventType, ErrorCode, Handle, OpenOptions, View, Widget } from "./widget-types.ts";

const SOURCE = "latchkey";
const VERSION = 1;
/** A frame that has loaded and sends no message was blocked by the browser. */
const SILENCE_MS = 3_000;
const LOAD_MS = 60_000;
const CLOSE_MS = 1_500;
/** How long a dialog shows the completed state. */
const DONE_MS = 2_500;
const HEIGHT_MAX_PX = 4_000;
const SANDBOX = "allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox";
const REFUSED =
  "The frame sends no message: this page's origin is not the session's, the session is not known, or the service can't be reached.";

const FRAME_STYLE = { display: "block", width: "100%", height: "36rem", border: "0", colorScheme: "normal" };
/** None on a phone, which the dialog fills. */
const ROOM = "max(0px, min(1rem, (100vw - 33rem) * 999))";
const DIALOG_STYLE = {
  boxSizing: "border-box",
  width: "min(32rem, 100vw)",
  maxWidth: "none",
  maxHeight: "100dvh",
  margin: "auto",
  padding: "0",
  border: "0",
  borderRadius: ROOM,
  overflow: "hidden",
  boxShadow: "0 0 0 100vmax rgb(0 0 0 / 55%)",
};

/** 128 bits: a frame that answers with it was created by this call. */
const newNonce = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );

interface Message {
  readonly source: unknown;
  readonly v: unknown;
  readonly session_id: unknown;
  readonly nonce: unknown;
  readonly seq: number;
  readonly type: string;
  readonly payload: object;
}

/** The lifecycle of a frame. */
class Opened {
  readonly #nonce = newNonce();
  readonly #frame = document.createElement("iframe");
  readonly #dialog: HTMLDialogElement | null;
  readonly #origin: string;
  readonly #session: string;
  readonly #listeners = new Map<EventType, Set<(payload: never) => void>>();
  readonly #timers: number[] = [];
  #options: OpenOptions;
  #seqOut = 0;
  #seqIn = 0;
  #view: View | null = null;
  #isReady = false;
  #isOver = false;
  #scroll = "";

  constructor(options: OpenOptions) {
    const url = new URL(options.embedUrl);
    this.#session = url.pathname.split("/").pop() ?? "";
    if (!options.clientToken || !this.#session) throw new TypeError("clientToken and embedUrl are needed");
    this.#options = options;
    this.#origin = url.origin;
    this.#dialog = options.container ? null : document.createElement("dialog");
    if (options.locale) url.searchParams.set("lang", options.locale);
    // Not a secret: it only distinguishes this frame from others.
    url.hash = this.#dialog ? `${this.#nonce}.modal` : this.#nonce;
    this.#frame.setAttribute("sandbox", SANDBOX);
    this.#frame.title = options.title ?? "Connect an account";
    this.#frame.referrerPolicy = "no-referrer";
    this.#frame.src = url.href;
    Object.assign(this.#frame.style, FRAME_STYLE);
    this.#frame.addEventListener("load", () =>
      this.#later(() => this.#fail("origin_not_allowed", REFUSED), SILENCE_MS),
    );
    this.#later(() => this.#fail("network", "The frame did not load."), LOAD_MS);
    window.addEventListener("message", this.#receive);
    if (this.#dialog) this.#showDialog(this.#dialog);
    else options.container?.append(this.#frame);
  }

  readonly handle: Handle = {
    close: () => {
      if (this.#isOver) return this.#remove();
      if (!this.#isReady) return this.#exit("closed");
      this.#post("close", {});
      this.#later(() => this.#exit("closed"), CLOSE_MS);
    },
    destroy: () => this.#remove(),
    on: (type, listener) => {
      const own = listener as (payload: never) => void;
      const all = this.#listeners.get(type) ?? new Set();
      this.#listeners.set(type, all.add(own));
      return () => void all.delete(own);
    },
    setLocale: (locale) => {
      this.#options = { ...this.#options, locale };
      if (this.#isReady) this.#post("set_locale", { locale });
    },
    setTheme: (theme) => {
      this.#options = { ...this.#options, theme };
      if (this.#isReady) this.#post("update_theme", { theme });
    },
  };

  /** Only a page of our service receives it, whatever the frame shows by then. */
  #post(type: string, payload: object): void {
    const { contentWindow } = this.#frame;
    contentWindow?.postMessage(
      {
        source: SOURCE,
        v: VERSION,
        session_id: this.#session,
        nonce: this.#nonce,
        seq: ++this.#seqOut,
        type,
        payload,
      },
      this.#origin,
    );
  }

  readonly #receive = (event: MessageEvent): void => {
    if (event.source !== this.#frame.contentWindow || event.origin !== this.#origin) return;
    const message = event.data as Message;
    if (!this.#isOurs(message)) return;
    if (this.#isOver) {
      // The end user has read that all is done. `completed` was the last event.
      if (message.type === "exited") this.#remove();
      return;
    }
    const { seq, type, payload } = message;
    // A reloaded frame starts from the beginning, and must be told everything again.
    if (type !== "ready" && seq <= this.#seqIn) return;
    this.#seqIn = seq;
    if (type === "ready") {
      const { clientToken, locale, theme } = this.#options;
      this.#post("init", { client_token: clientToken, ...(locale && { locale }), ...(theme && { theme }) });
      if (this.#isReady) return;
      this.#isReady = true;
    }
    this.#take({ type, payload } as AnyEvent);
  };

  #isOurs(message: Message | null | undefined): boolean {
    return (
      typeof message === "object" &&
      message?.source === SOURCE &&
      message.v === VERSION &&
      message.session_id === this.#session &&
      message.nonce === this.#nonce &&
      typeof message.seq === "number" &&
      typeof message.type === "string" &&
      typeof message.payload === "object"
    );
  }

  #take(event: AnyEvent): void {
    if (event.type === "resize") this.#resize(Number(event.payload.height));
    if (event.type === "opened" || event.type === "view_changed") this.#view = event.payload.view;
    if (event.type === "completed") {
      // Sent once, as the last event.
      this.#isOver = true;
      if (this.#dialog) this.#later(() => this.#remove(), DONE_MS);
    }
    if (event.type === "exited") this.#remove();
    this.#tell(event);
  }

  #tell(event: AnyEvent): void {
    const options = this.#options;
    options.onEvent?.(event);
    for (const listener of this.#listeners.get(event.type) ?? []) listener(event.payload as never);
    if (event.type === "ready") options.onReady?.();
    if (event.type === "completed") options.onCompleted?.(event.payload);
    if (event.type === "exited") options.onExit?.(event.payload);
    if (event.type === "error") options.onError?.(event.payload);
  }

  #resize(height: number): void {
    if (height > 0) this.#frame.style.height = `${Math.min(Math.ceil(height), HEIGHT_MAX_PX)}px`;
  }

  #fail(code: ErrorCode, message: string): void {
    if (this.#isReady || this.#isOver) return;
    this.#view = "error";
    this.#tell({ type: "error", payload: { code, message, recoverable: code === "network" } });
    this.#exit("error");
  }

  #exit(reason: "closed" | "error"): void {
    if (this.#isOver) return;
    this.#remove();
    this.#tell({ type: "exited", payload: { at_view: this.#view, reason } });
  }

  #later(run: () => void, ms: number): void {
    this.#timers.push(window.setTimeout(run, ms));
  }

  #showDialog(dialog: HTMLDialogElement): void {
    Object.assign(dialog.style, DIALOG_STYLE);
    dialog.setAttribute("aria-label", this.#frame.title);
    // The Escape key outside the frame works like inside.
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      this.handle.close();
    });
    // Long content scrolls inside the frame, which has the focus, so that the keyboard works, too.
    this.#frame.style.maxHeight = `calc(100dvh - 4 * ${ROOM})`;
    dialog.append(this.#frame);
    document.body.append(dialog);
    const { style } = document.documentElement;
    this.#scroll = style.overflow;
    style.overflow = "hidden";
    dialog.showModal();
    this.#frame.focus();
  }

  #remove(): void {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    window.removeEventListener("message", this.#receive);
    this.#frame.remove();
    if (!this.#dialog?.isConnected) return;
    document.documentElement.style.overflow = this.#scroll;
    // Closing restores the focus.
    this.#dialog.close();
    this.#dialog.remove();
  }
}

const widget: Widget = { open: (options) => new Opened(options).handle };
Object.assign(window, { Latchkey: Object.freeze(widget) });
