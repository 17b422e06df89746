export type GateFailure =
  /** Not allowed, whatever the other side says: origin, address, method, header. Nothing was sent. */
  | "refused"
  /** A redirect led outside the allowed origins, or would have carried a secret to another one. */
  | "redirect_outside"
  | "too_large"
  /** The answer is of a kind that cannot be read. */
  | "unreadable"
  | "timeout"
  /** No connection came about: nothing was sent. */
  | "unreachable"
  | "connection"
  | "cancelled";

/**
 * An exchange that gave no response. The message names the host and the reason, never a path, a header, a query or a body,
 * and there is no cause: errors of the network libraries quote what was sent (docs/decisions/0014).
 */
export class GateError extends Error {
  override readonly name = "GateError";
  readonly failure: GateFailure;

  constructor(failure: GateFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}
