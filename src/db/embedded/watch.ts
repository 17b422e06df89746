import { setTimeout as sleep } from "node:timers/promises";

const LOOK_EVERY_MS = 1_000;
/** The wait after a failed start, in which, for example, space can be freed on a full disk. */
const BACK_OFF_MS = { first: 1_000, most: 5_000 };

export interface WatchOptions {
  /** Receives the news that the server is gone, why a start failed, and that it is back. */
  readonly notice: (message: string) => void;
  /** Called once, when the server could not be restarted for this long. It is no longer supervised then. */
  readonly onGivenUp: (error: Error) => void;
  readonly giveUpAfterMs: number;
}

export interface ServerWatch {
  /** For how long the server has not run, in milliseconds; 0: it runs. */
  goneForMs(): number;
  /** Ends the supervision, after waiting for a start in progress. */
  stop(): Promise<void>;
}

/**
 * Looks every second whether the server runs (the machine may have killed it, or a full disk), and starts it again until that
 * works. Every process that uses the server does so; `startAgain` ensures that one of them starts it and the others find it.
 */
export function watchServer(
  isRunning: () => boolean,
  startAgain: () => Promise<void>,
  { notice, onGivenUp, giveUpAfterMs }: WatchOptions,
): ServerWatch {
  const stopped = new AbortController();
  let goneSinceMs: number | null = null;
  const goneForMs = (): number => (goneSinceMs === null ? 0 : performance.now() - goneSinceMs);

  const restart = async (): Promise<void> => {
    goneSinceMs = performance.now();
    notice("The embedded PostgreSQL is gone (killed, or out of disk space?): it is started again");
    for (let waitMs = BACK_OFF_MS.first; ; waitMs = Math.min(waitMs * 2, BACK_OFF_MS.most)) {
      try {
        await startAgain();
        notice(`The embedded PostgreSQL runs again, after ${(goneForMs() / 1_000).toFixed(1)} s`);
        goneSinceMs = null;
        return;
      } catch (error) {
        if (stopped.signal.aborted) return;
        if (goneForMs() > giveUpAfterMs) throw error;
        notice(`${(error as Error).message}\nRetrying in ${waitMs / 1_000} s.`);
        await sleep(waitMs, undefined, { signal: stopped.signal, ref: false });
      }
    }
  };
  const watch = async (): Promise<void> => {
    for (;;) {
      await sleep(LOOK_EVERY_MS, undefined, { signal: stopped.signal, ref: false });
      if (!isRunning()) await restart();
    }
  };
  const watching = watch().catch((error: unknown) => {
    if (!stopped.signal.aborted) onGivenUp(error as Error);
  });
  return {
    goneForMs,
    stop: async () => {
      stopped.abort();
      await watching;
    },
  };
}
