/** A body that is read while it is sent: anew for each attempt, and for each redirect that keeps it. */
export interface StreamedBody {
  readonly sizeBytes: number;
  readonly open: () => AsyncIterable<Uint8Array>;
  /** What it is made of, where that is known: texts as bytes, and files. */
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
  /** The body may be long: it is written to a file of the run while it comes, and is not in memory. */
  readonly toFile?: boolean | undefined;
}

/** A body that was written to a file. */
export interface KeptBody {
  readonly sizeBytes: number;
  /** Opens the bytes anew at each call. */
  readonly open: () => AsyncIterable<Uint8Array>;
}

/** Writes a body while it comes. Fails with whatever the bytes fail with, and keeps nothing then. */
export type KeepBody = (bytes: AsyncIterable<Uint8Array>) => Promise<() => AsyncIterable<Uint8Array>>;

/** The whole response, read and decompressed within `maxBytes`. */
export interface OutboundResponse {
  readonly status: number;
  /** Where the response came from, after redirects. */
  readonly url: string;
  /** Whether it came after a redirect: then it is no answer to the request itself. */
  readonly isRedirected: boolean;
  /** Lower-case names. Several values of one name are joined by ", " (`set-cookie` is left out). */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
  /** Where the body is when it was asked `toFile`; `body` is empty then. */
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
  /** The answer is of a kind that can't be read. Never retried; the request itself was sent. */
  | "unreadable"
  | "timeout"
  /** No connection came about: nothing was sent. */
  | "unreachable"
  | "connection"
  | "cancelled";

/** What a read is tried again for (docs/decisions/0008). */
export const PASSING_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);
export const PASSING_FAILURES: ReadonlySet<OutboundFailure> = new Set([
  "connection",
  "timeout",
  "unreachable",
]);

/** An exchange that gave no response. The message names host and reason, never a header, a query or a body. */
export class OutboundError extends Error {
  override readonly name = "OutboundError";
  readonly failure: OutboundFailure;

  constructor(failure: OutboundFailure, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.failure = failure;
  }
}

/** Called before the first byte of each hop, when its connection stands; what it throws ends the request, and the hop was not sent. */
export type MayLeave = () => void;

/** `keep` is where `toFile` is. */
export type SendOutbound = (
  request: OutboundRequest,
  signal: AbortSignal,
  keep?: KeepBody,
  mayLeave?: MayLeave,
) => Promise<OutboundResponse>;
