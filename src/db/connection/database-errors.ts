import pg from "pg";

/** What the server says of a statement. */
export function isDatabaseError(error: unknown): boolean {
  return error instanceof pg.DatabaseError;
}

/** Another transaction was in the way for too long, or in turn waited for this one: nothing was done, and it may work later. */
export function isLockedOut(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === "55P03" || error.code === "40P01");
}

/** How the driver's and the pool's own errors begin. A target that can't be reached speaks of a connection as well. */
const LOST =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|There was an error establishing an SSL|The database connection broke|timeout exceeded when trying to connect|timeout expired|Query read timeout)/;

/** Whether the database could not be reached, or went away: what was asked may work later. */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof pg.DatabaseError) return /^(08|57P|53)/.test(error.code ?? "");
  const { code, syscall } = error as NodeJS.ErrnoException;
  // A file that is missing says ENOENT too: only the server's socket counts.
  if (code === "ENOENT") return syscall === "connect";
  if (
    code !== undefined &&
    /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)/.test(code)
  )
    return true;
  return LOST.test(error.message);
}
