import { constants } from "node:os";
import { CommandFailed } from "./output.ts";

type Signal = "SIGINT" | "SIGTERM" | "SIGHUP";

/** The process received a signal before its work was done. */
export class Interrupted extends CommandFailed {
  constructor(signal: Signal) {
    super(`Stopped by ${signal}.`, 128 + constants.signals[signal]);
  }
}

export interface StopSignal {
  /** Aborted by the first signal, with an Interrupted as its reason. */
  readonly signal: AbortSignal;
  /** Returns the work's result. Throws Interrupted when a signal arrives first. */
  race<T>(work: Promise<T>): Promise<T>;
  /** Resolves when a signal arrives. */
  readonly come: Promise<void>;
}

/** One Ctrl-C reaches the program several times: from the terminal, from npm and from the script between them. */
const ONE_PRESS_MS = 300;

/** Listens for signals until the process ends. The first one is for the caller; a later one ends the process. */
export function stopSignal(signals: readonly Signal[]): StopSignal {
  const controller = new AbortController();
  const { signal: aborted } = controller;
  let firstAt = 0;
  const come = new Promise<void>((resolve) =>
    aborted.addEventListener("abort", () => resolve(), { once: true }),
  );
  for (const signal of signals) {
    process.on(signal, () => {
      const interrupted = new Interrupted(signal);
      if (aborted.aborted) {
        if (performance.now() - firstAt > ONE_PRESS_MS) process.exit(interrupted.exitCode);
        return;
      }
      firstAt = performance.now();
      controller.abort(interrupted);
    });
  }
  return {
    signal: aborted,
    come,
    race: async (work) => {
      const stopped = come.then(() => {
        throw aborted.reason;
      });
      return await Promise.race([work, stopped]);
    },
  };
}
