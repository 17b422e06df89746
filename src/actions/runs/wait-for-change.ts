import type { Caller, Needs } from "#actions/services.ts";
import type { VisibleRun } from "#db/runs/runs.ts";
import { isTerminal } from "#domain/run.ts";

/**
 * The run's next state as soon as there is one; the given one after `waitMs`, once it has ended, or when `gone` is aborted.
 * Throws Problem 429 if too many callers wait or watch.
 */
export async function waitForChange(
  { runWatch }: Needs<"runWatch">,
  caller: Caller,
  run: VisibleRun,
  { waitMs, gone }: { readonly waitMs: number; readonly gone: AbortSignal },
): Promise<VisibleRun> {
  if (isTerminal(run.status)) return run;
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), waitMs);
  const holder = { keyId: caller.keyId, accountId: caller.account.id };
  try {
    const signal = AbortSignal.any([over.signal, gone]);
    for await (const event of runWatch.watch(run, holder, run.sequence, signal))
      if (event !== "unchanged") return event;
  } finally {
    clearTimeout(timer);
  }
  return run;
}
