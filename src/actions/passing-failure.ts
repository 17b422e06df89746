import { StoreFailed } from "#blobs/store.ts";
import { isPassing } from "#db/connection/database-errors.ts";

/** Whether a failure is the database's or the object store's and passes by itself: `503` with `Retry-After` then, and not `500`. */
export const isPassingFailure = (error: unknown): boolean => error instanceof StoreFailed || isPassing(error);
