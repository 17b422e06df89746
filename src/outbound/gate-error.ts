export type GateFailure =
  /** Refused by our rules: origin, address, method or header. Nothing was sent. */
  | "refused"
  /** A redirect led outside the allowed origins, or would have sent a secret to another one. */
  | "redirect_outside"
  | "too_large"
  /** The response can't be read. */
  | "unreadable"
  | "timeout"
  /** No connection was established: nothing was sent. */
  | "unreachable"
  | "connection"
  | "cancelled";

/**
 * An exchange without a response. The message names the host and the reason, never a path, a header, a query or a body, and there
 * is no cause: errors of the network libraries quote what was sent (docs/decisions/0014).
 */
export class GateError extends Error {
  override readonly name = "GateError";
  readonly failure: GateFailure;

  constructor(failure: GateFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}
