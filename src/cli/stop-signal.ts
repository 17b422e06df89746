import { constants } from "node:os";
import { CommandFailed } from "./output.ts";

type Signal = "SIGINT" | "SIGTERM" | "SIGHUP";

/** The process was told to stop before its work was done. */
export class Interrupted extends CommandFailed {
  constructor(signal: Signal) {
    super(`Stopped by ${signal}.`, 128 + constants.signals[signal]);
  }
}

export interface StopSignal {
  /** Aborted, with an Interrupted as its reason, by the first of the signals. */
  readonly signal: AbortSignal;
  /** What the work gives; throws Interrupted when the signal comes earlier. */
  race<T>(work: Promise<T>): Promise<T>;
  /** Resolves when the signal has come. */
  readonly come: Promise<void>;
}

/** One Ctrl-C reaches a program more than once: from the terminal, from npm and from the script between them. */
const ONE_PRESS_MS = 300;

/** Listens from now on for as long as the process lives. The first signal is for the caller, a later one ends the process. */
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
