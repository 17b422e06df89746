/** Connects callers of the API with the dialog that asks for a code. */
export interface CodeRequest {
  /** The code was accepted. */
  resolve(): void;
  /** The dialog was cancelled. */
  cancel(): void;
}

/** The dialog was closed: nothing was done, and no message is needed. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
}

let show: ((request: CodeRequest) => void) | null = null;
let waiting: Promise<void> | null = null;

/** Registers the dialog. */
export function onCodeRequest(listener: (request: CodeRequest) => void): () => void {
  show = listener;
  return () => {
    show = null;
  };
}

/** Opens one dialog, however many calls are waiting. Throws Cancelled. */
export async function askForCode(): Promise<void> {
  waiting ??= new Promise<void>((resolve, reject) => {
    if (show) show({ resolve, cancel: () => reject(new Cancelled("No code was given.")) });
    else reject(new Cancelled("There is nobody to ask."));
  }).finally(() => {
    waiting = null;
  });
  await waiting;
}

const channel = new BroadcastChannel("latchkey step-up");

/** Tells other tabs of the same session that calls which wait for the provider can continue. */
export function announceStepUp(): void {
  channel.postMessage("done");
}

export function onStepUpDone(listener: () => void): () => void {
  channel.addEventListener("message", listener);
  return () => channel.removeEventListener("message", listener);
}
