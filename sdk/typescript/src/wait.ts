import { sleep } from "./connection.ts";
import { ConnectionError, ServerError, WaitTimeoutError } from "./errors.ts";

export interface WaitOptions<T> {
  /** How long to wait. Default: 600,000 (ten minutes). */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with each new state. */
  readonly onChange?: ((state: T) => void) | undefined;
}

export const WAIT_MS = 600_000;
/** The interface's interval (`spec/interface.md`, Limits). */
const POLL_MS = 2_000;

/** Reads until `isTerminal`, also while the service is restarted. Throws WaitTimeoutError. */
export async function poll<T extends { readonly id: string; readonly status: string }>(
  read: () => Promise<T>,
  isTerminal: (state: T) => boolean,
  { timeoutMs = WAIT_MS, signal, onChange }: WaitOptions<T>,
): Promise<T> {
  const until = Date.now() + timeoutMs;
  for (let last: T | undefined; ;) {
    try {
      const state = await read();
      if (state.status !== last?.status) onChange?.(state);
      if (isTerminal(state)) return state;
      last = state;
      if (Date.now() + POLL_MS > until)
        throw new WaitTimeoutError(`${state.id} is still ${state.status} after ${timeoutMs} ms`, state);
    } catch (error) {
      const mayPass = error instanceof ConnectionError || error instanceof ServerError;
      if (!mayPass || Date.now() + POLL_MS > until) throw error;
    }
    await sleep(POLL_MS, signal);
  }
}
