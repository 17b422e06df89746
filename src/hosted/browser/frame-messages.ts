// How a frame and its page talk: one page, one origin, both checked each time. docs/embedded.md.

const SOURCE = "latchkey";
const VERSION = 1;
const { session = "", origin = "" } = document.body.dataset;
const [nonce = "", manner] = location.hash.slice(1).split(".");

/** The page that this frame communicates with; null: there is none, or it has not sent a nonce. */
export const pageOrigin = window.parent === window || nonce === "" || origin === "" ? null : origin;
/** Whether the page shows the frame as a dialog. */
export const isModal = manner === "modal";

let seqOut = 0;
let seqIn = 0;

/** Ids, codes and numbers; nothing that was typed. */
export function post(type: string, payload: object): void {
  if (pageOrigin === null) return;
  const message = { source: SOURCE, v: VERSION, session_id: session, nonce, seq: ++seqOut, type, payload };
  window.parent.postMessage(message, pageOrigin);
}

/** Accepts messages only from the page itself, with the session's origin, about this session and this frame, and each message once. */
export function listen(hear: (type: string, payload: Readonly<Record<string, unknown>>) => void): void {
  window.addEventListener("message", (event: MessageEvent) => {
    if (event.source !== window.parent || event.origin !== pageOrigin) return;
    const message = event.data as Readonly<Record<string, unknown>> | null;
    if (typeof message !== "object" || message === null) return;
    const { source, v, session_id: id, nonce: given, seq, type, payload } = message;
    if (source !== SOURCE || v !== VERSION || id !== session || given !== nonce) return;
    if (typeof seq !== "number" || seq <= seqIn || typeof type !== "string") return;
    if (typeof payload !== "object" || payload === null) return;
    seqIn = seq;
    hear(type, payload as Readonly<Record<string, unknown>>);
  });
}
