/** Of the system: the database's address does not answer, or the connection to it broke. */
const CONNECTION =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;

/**
 * SQLSTATEs of a refusal that may be over at the next try: the connection (08), resources (53), the server going down, coming up
 * or cutting a statement off (57), a standby that is not yet, or a primary that is no longer one (55000, 25006), a lock that did
 * not come (55P03), a transaction that waited too long (25P03) or met another one (40001, 40P01).
 */
const SQLSTATE = /^(08...|53...|57P0.|57014|55000|55P03|25006|25P03|40001|40P01)$/;

/** How the driver's and the pool's own errors begin, which have no code. */
const LOST =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|There was an error establishing an SSL|The database connection broke|timeout exceeded when trying to connect|timeout expired|Query read timeout)/;

/** Whether a failure is the database's or the object store's and passes by itself: `503` with `Retry-After` then, and not `500`. */
export function isPassingFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // The object store's: it can be asked again.
  if (error.name === "StoreFailed") return true;
  const { code, syscall } = error as { code?: unknown; syscall?: unknown };
  // A file that is missing says ENOENT too: only the server's socket counts.
  if (code === "ENOENT") return syscall === "connect";
  if (typeof code === "string") return CONNECTION.test(code) || SQLSTATE.test(code);
  return LOST.test(error.message);
}
