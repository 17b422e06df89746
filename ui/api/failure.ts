/** A detail of an API error; spec, Error object. */
export interface FailureDetail {
  readonly message: string;
  readonly code: string | null;
  readonly field: string | null;
}

/** An unsuccessful answer, or no answer at all (status 0). */
export class ApiFailure extends Error {
  override readonly name = "ApiFailure";
  readonly status: number;
  readonly details: readonly FailureDetail[];
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;

  constructor(
    status: number,
    message: string,
    more: {
      readonly details?: readonly FailureDetail[];
      readonly requestId?: string | null;
      readonly retryAfterSeconds?: number | null;
    } = {},
  ) {
    super(message);
    this.status = status;
    this.details = more.details ?? [];
    this.requestId = more.requestId ?? null;
    this.retryAfterSeconds = more.retryAfterSeconds ?? null;
  }

  has(code: string): boolean {
    return this.details.some((detail) => detail.code === code);
  }

  /** The problem with a field of a form, to be shown next to it. */
  ofField(field: string): string | undefined {
    return this.details.find((detail) => detail.field === field)?.message;
  }
}

interface Explained {
  readonly title: string;
  readonly message: string;
}

/** Explains what happened, and what to do now. */
export function explainFailure(error: unknown): Explained {
  if (!(error instanceof ApiFailure))
    return {
      title: "Something went wrong on this page",
      message: "Reload the page. If it happens again, contact the operator of this service.",
    };
  const { status, message, requestId } = error;
  if (status === 0)
    return { title: navigator.onLine ? "The service can't be reached" : "No connection", message };
  if (status === 403) return { title: "You don't have permission to do this", message };
  if (status === 404) return { title: "Not found", message };
  if (status === 409) return { title: "It was changed in the meantime", message };
  if (status === 429)
    return {
      title: "Too many requests",
      message: `${message} ${error.retryAfterSeconds ? `Try again in ${error.retryAfterSeconds} s.` : ""}`,
    };
  if (status >= 500)
    return {
      title: "The service failed",
      message: `${message}${requestId ? ` Request ${requestId}.` : ""}`,
    };
  return { title: "The request was rejected", message: [message, ...otherMessages(error)].join(" ") };
}

const otherMessages = (error: ApiFailure): readonly string[] =>
  error.details.map((detail) => detail.message).filter((message) => message !== error.message);
