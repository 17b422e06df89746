import type { ErrorDetail, ErrorEnvelope } from "./api-types.ts";

/** The base of every error that this package throws. */
export class LatchkeyError extends Error {
  override readonly name: string = "LatchkeyError";
}

/** There was no response: the connection failed, or the request timed out. `cause` has the reason. */
export class ConnectionError extends LatchkeyError {
  override readonly name = "ConnectionError";
}

/** A webhook is not genuine, or too old: answer it with status 400. */
export class WebhookVerificationError extends LatchkeyError {
  override readonly name = "WebhookVerificationError";
}

/** The session or run has not reached a terminal status in the given time. It is unaffected: wait again. */
export class WaitTimeoutError<T = unknown> extends LatchkeyError {
  override readonly name = "WaitTimeoutError";
  /** Its last known state; undefined if none was received. */
  readonly last: T | undefined;

  constructor(message: string, last: T | undefined) {
    super(message);
    this.last = last;
  }
}

/** A response with an error status. Branch on `type` and `code`, never on `message`. */
export class ApiError extends LatchkeyError {
  override readonly name: string = "ApiError";
  /** The HTTP status. */
  readonly status: number;
  /** `error.type` of the response, such as `validation_error`; `unknown` if the response is not Latchkey's. */
  readonly type: string;
  /** The problems, one by one. */
  readonly details: readonly ErrorDetail[];
  /** `X-Request-Id` of the response. Quote it when you report a failure. */
  readonly requestId: string | undefined;

  constructor(response: Response, envelope: ErrorEnvelope | undefined) {
    const { status, headers } = response;
    super(
      envelope?.error.message ??
        `The response has the status ${status} and is not from Latchkey: check baseUrl`,
    );
    this.status = status;
    this.type = envelope?.error.type ?? "unknown";
    this.details = envelope?.error.details ?? [];
    this.requestId = headers.get("x-request-id") ?? undefined;
  }

  /** Whether a detail of the error has this code, such as `idempotency_key_reuse`. */
  hasCode(code: string): boolean {
    return this.details.some((detail) => detail.code === code);
  }
}

/** 401: the API key is missing, malformed or invalid. */
export class AuthenticationError extends ApiError {
  override readonly name = "AuthenticationError";
}

/** 403: the API key has no access to the resource. */
export class AuthorizationError extends ApiError {
  override readonly name = "AuthorizationError";
}

/** 404: the resource does not exist, or belongs to another account. */
export class NotFoundError extends ApiError {
  override readonly name = "NotFoundError";
}

/** 409: the state does not allow it, such as results of a run that has not completed. */
export class ConflictError extends ApiError {
  override readonly name = "ConflictError";
}

/** 400, 413, 415 or 422: the request is invalid; `details` names the fields. */
export class ValidationError extends ApiError {
  override readonly name = "ValidationError";
}

/** 429, after the retries. */
export class RateLimitError extends ApiError {
  override readonly name = "RateLimitError";
}

/** 500 and above, after the retries. */
export class ServerError extends ApiError {
  override readonly name = "ServerError";
}

const BY_STATUS: Readonly<Record<number, typeof ApiError>> = {
  400: ValidationError,
  401: AuthenticationError,
  403: AuthorizationError,
  404: NotFoundError,
  409: ConflictError,
  413: ValidationError,
  415: ValidationError,
  422: ValidationError,
  429: RateLimitError,
};

/** Reads the whole response, so that its connection can be used again. */
export async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  const Kind = BY_STATUS[response.status] ?? (response.status >= 500 ? ServerError : ApiError);
  return new Kind(response, readEnvelope(text));
}

function readEnvelope(text: string): ErrorEnvelope | undefined {
  try {
    const body = JSON.parse(text) as Partial<ErrorEnvelope> | null;
    return typeof body?.error?.message === "string" ? (body as ErrorEnvelope) : undefined;
  } catch {
    return undefined;
  }
}
