/** The time limit of a whole exchange, combined with its caller's signal. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Why the signal aborted, or null when it did not. */
  readonly failure: "cancelled" | "timeout" | null;
  /** Must be called when the exchange has ended, because the caller's signal outlives it. */
  end(): void;
}

export function startDeadline(signal: AbortSignal, timeoutMs: number): Deadline {
  const controller = new AbortController();
  let failure: Deadline["failure"] = null;
  const stop = (why: "cancelled" | "timeout") => () => {
    failure ??= why;
    controller.abort();
  };
  const cancel = stop("cancelled");
  const timer = setTimeout(stop("timeout"), timeoutMs);
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  return {
    signal: controller.signal,
    get failure() {
      return failure;
    },
    end() {
      clearTimeout(timer);
      signal.removeEventListener("abort", cancel);
    },
  };
}
