import { isLockedOut } from "#db/connection/database-errors.ts";

/** Including the lock timeouts, over a minute in total: none of our transactions takes so long. */
const TRIES_MAX = 15;

/**
 * Retries a run's writes while another transaction (a review, a purge, a migration) locks its rows or tables: nothing was written, so
 * the retry is safe.
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
