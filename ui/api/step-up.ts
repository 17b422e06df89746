/** Between callers of the API and the dialog that asks the person for a code. */
export interface CodeRequest {
  /** The code was taken. */
  resolve(): void;
  /** The person does not want to. */
  cancel(): void;
}

/** A person has closed the dialog: nothing was done, and nothing needs to be said. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
}

let show: ((request: CodeRequest) => void) | null = null;
let waiting: Promise<void> | null = null;

/** The dialog says that it is there. */
export function onCodeRequest(listener: (request: CodeRequest) => void): () => void {
  show = listener;
  return () => {
    show = null;
  };
}

/** One dialog, however many calls want it. Throws Cancelled. */
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

/** Other tabs of the same session: what waits for the provider may go on. */
export function tellStepUp(): void {
  channel.postMessage("done");
}

export function onToldStepUp(listener: () => void): () => void {
  channel.addEventListener("message", listener);
  return () => channel.removeEventListener("message", listener);
}
