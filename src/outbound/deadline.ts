/** The time that a whole exchange has, joined with its caller's signal. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Why the signal aborted, or null when it did not. */
  readonly failure: "cancelled" | "timeout" | null;
  /** Must be called when the exchange is over: the caller's signal lives longer. */
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
