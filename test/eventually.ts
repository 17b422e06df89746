import { setTimeout as sleep } from "node:timers/promises";

/** The pause between two looks grows with the wait, so that a long one costs little. */
const LOOK_MS = { min: 20, max: 100, ofWait: 1 / 10 };

/** A machine that does ten other things comes to everything slowly. */
export const PATIENCE_MS = 120_000;

/** Looks until `find` gives something. Throws with `what` when it does not in time. */
export async function eventually<T>(
  what: string,
  find: () => T | undefined | Promise<T | undefined>,
  timeoutMs = 10_000,
): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > timeoutMs) throw new Error(`not in ${timeoutMs} ms: ${what}`);
    await sleep(Math.min(LOOK_MS.min + waitedMs * LOOK_MS.ofWait, LOOK_MS.max));
  }
}

/** Looks until it is so. Throws with `what` when it is not within `PATIENCE_MS`: no test says by this how quick something is. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(what, async () => ((await isSo()) ? true : undefined), PATIENCE_MS);
}
