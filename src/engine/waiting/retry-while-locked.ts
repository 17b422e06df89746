import { isLockedOut } from "#db/connection/database-errors.ts";

/** With the wait of each, over a minute: no transaction of ours takes so long. */
const TRIES_MAX = 15;

/**
 * What a run writes down while another transaction has its rows or tables (a review, a purge, a migration) is tried again: nothing of
 * it was done, and the run is none the worse.
 */
export async function retryWhileLocked<T>(write: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (!isLockedOut(error) || tries === TRIES_MAX) throw error;
    }
  }
}
