import { describeError, type Log } from "#lib/log.ts";

/** Work that is repeated soon anyway: a failure is only logged. */
export async function logFailure(log: Log, task: () => Promise<unknown>): Promise<void> {
  try {
    await task();
  } catch (error) {
    log.warn(describeError(error), "the worker's upkeep failed; retrying");
  }
}
