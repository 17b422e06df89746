/** A streamed body: opened again for each attempt, and for each redirect that keeps it. */
export interface StreamedBody {
  readonly sizeBytes: number;
  readonly open: () => AsyncIterable<Uint8Array>;
  /** The parts of the body, if known: strings as bytes, and files. */
  readonly sections?: readonly (Uint8Array | StreamedBody)[] | undefined;
}

/** A request of a node or a login, before credentials are added. */
export interface OutboundRequest {
  readonly method: string;
  /** Absolute, or relative to the first of the allowed hosts. */
  readonly url: string;
  readonly query?: readonly (readonly [name: string, value: string])[] | undefined;
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
  readonly body?: string | Uint8Array | StreamedBody | undefined;
  /** Longest decompressed response, in bytes; over it the request fails. */
  readonly maxBytes?: number | undefined;
  /** Redirects to follow inside the allowed hosts; 0 = none (the redirect itself is the response). */
  readonly redirectsMax?: number | undefined;
  readonly timeoutMs?: number | undefined;
  /** The body may be long: it is streamed to a file of the run instead of memory. */
  readonly toFile?: boolean | undefined;
}

/** A body that was written to a file. */
export interface KeptBody {
  readonly sizeBytes: number;
  /** Opens a new stream at each call. */
  readonly open: () => AsyncIterable<Uint8Array>;
}

/** Streams a body to a file. If the stream fails, it fails with the same error and leaves no file. */
export type KeepBody = (bytes: AsyncIterable<Uint8Array>) => Promise<() => AsyncIterable<Uint8Array>>;

/** The whole response, read and decompressed within `maxBytes`. */
export interface OutboundResponse {
  readonly status: number;
  /** The final address, after redirects. */
  readonly url: string;
  /** Whether the response followed a redirect, so that it does not answer the request itself. */
  readonly isRedirected: boolean;
  /** Lower-case names. Several values of one name are joined by ", " (`set-cookie` is left out). */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
  /** The file of the body with `toFile`; `body` is empty then. */
  readonly kept: KeptBody | null;
  /** The body as text, by the charset of its content type (default UTF-8). */
  text(): string;
}

export type OutboundFailure =
  /** The gate refused: host not allowed, private address, wrong scheme or port. Never retried. */
  | "refused"
  /** A redirect led outside the allowed hosts, or to too many others. Never retried; the request itself was sent. */
  | "redirect_outside"
  /** The response is over `maxBytes`. Never retried. */
  | "too_large"
  /** The response has a form that can't be read. Never retried; the request itself was sent. */
  | "unreadable"
  | "timeout"
  /** No connection was established: nothing was sent. */
  | "unreachable"
  | "connection"
  | "cancelled";

/** The statuses and errors after which a read is retried (docs/decisions/0008). */
export const PASSING_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);
export const PASSING_FAILURES: ReadonlySet<OutboundFailure> = new Set([
  "connection",
  "timeout",
  "unreachable",
]);

/** An exchange without a response. The message contains the host and the reason, never a header, a query or a body. */
export class OutboundError extends Error {
  override readonly name = "OutboundError";
  readonly failure: OutboundFailure;

  constructor(failure: OutboundFailure, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.failure = failure;
  }
}

/** Called before the first byte of each hop, once it is connected; if it throws, the request ends and the hop was not sent. */
export type MayLeave = () => void;

/** `keep` is given together with `toFile`. */
export type SendOutbound = (
  request: OutboundRequest,
  signal: AbortSignal,
  keep?: KeepBody,
  mayLeave?: MayLeave,
) => Promise<OutboundResponse>;
