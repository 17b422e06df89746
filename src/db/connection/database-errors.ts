import pg from "pg";

/** The server's error for a statement. */
export function isDatabaseError(error: unknown): boolean {
  return error instanceof pg.DatabaseError;
}

/** A lock timeout or deadlock: nothing was done, and a retry may succeed. */
export function isLockedOut(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === "55P03" || error.code === "40P01");
}

/** How the driver's and the pool's own errors begin, which have no code. A target that can't be reached speaks of a connection as well. */
const LOST =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|There was an error establishing an SSL|The database connection broke|timeout exceeded when trying to connect|timeout expired|Query read timeout)/;

/** Error codes of the system: the database's address does not respond, or the connection was lost. */
const CONNECTION =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;

function isOfConnection(error: Error): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException;
  // A missing file is ENOENT too: only the server's socket counts.
  if (code === "ENOENT") return syscall === "connect";
  return code === undefined ? LOST.test(error.message) : CONNECTION.test(code);
}

/** Whether the database was unreachable or the connection was lost: the operation may work later. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(08|57P|53)/.test(error.code ?? "");
  return error instanceof Error && isOfConnection(error);
}

/**
 * SQLSTATEs of temporary failures: connection (08), resources (53), a server that is shutting down, starting or has cancelled a
 * statement (57), a standby that was not yet promoted or a former primary (55000, 25006), a lock timeout (55P03), a transaction
 * that was idle too long (25P03) or conflicted with another one (40001, 40P01).
 */
const PASSING = /^(08...|53...|57P0.|57014|55000|55P03|25006|25P03|40001|40P01)$/;

/** Whether a failure of the database passes by itself. */
export function isPassing(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return PASSING.test(error.code ?? "");
  return error instanceof Error && isOfConnection(error);
}
