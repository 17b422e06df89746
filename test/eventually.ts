import { setTimeout as sleep } from "node:timers/promises";

const LOOK_MS = 20;

/** A machine that does ten other things comes to everything slowly. */
export const PATIENCE_MS = 120_000;

/** Looks until `find` gives something. Throws with `what` when it does not in time. */
export async function eventually<T>(
  what: string,
  find: () => T | undefined | Promise<T | undefined>,
  timeoutMs = 10_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`not in ${timeoutMs} ms: ${what}`);
    await sleep(LOOK_MS);
  }
}

/** Looks until it is so. Throws with `what` when it is not within `PATIENCE_MS`: no test says by this how quick something is. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(what, async () => ((await isSo()) ? true : undefined), PATIENCE_MS);
}
