import { ExplainedError } from "#lib/explained-error.ts";
/** Spec, Error object: the closed set of `error.type`. */
export type ProblemType =
  | "authentication_error"
  | "authorization_error"
  | "not_found"
  | "validation_error"
  | "conflict"
  | "rate_limit_exceeded"
  | "internal_error";

/** Spec, Errors. Where an endpoint has a status of its own (400, 413 …), the Problem carries it. */
export const PROBLEM_STATUS: Readonly<Record<ProblemType, number>> = {
  authentication_error: 401,
  authorization_error: 403,
  not_found: 404,
  conflict: 409,
  validation_error: 422,
  rate_limit_exceeded: 429,
  internal_error: 500,
};

/** Spec, Errors: `details[].code`; those after the first two are this service's additions (docs/decisions/0011). */
export type ProblemCode =
  | "invalid_input_data"
  | "idempotency_key_reuse"
  | "idempotency_key_in_use"
  | "run_data_purged"
  | "queued_runs_quota"
  | "stored_bytes_quota";

/** Why a sign-in at the operators' provider failed. */
export type OidcRefusal =
  /** The `state` does not belong to this browser, has expired, or was used before. */
  | "oidc_state"
  /** The provider, or the person there, refused. */
  | "oidc_denied"
  /** The provider's answer is not valid. */
  | "oidc_failed"
  /** The provider reports no verified email address. */
  | "oidc_unverified"
  /** No operator has that address. */
  | "oidc_unknown"
  /** The operator with that address is linked to another identity at the provider. */
  | "oidc_taken"
  | "oidc_disabled";

/** Only in the operator API: the step that a signed-in operator, or one who is signing in, must take first. */
export type OperatorProblemCode =
  | "second_factor_required"
  | "password_change_required"
  | "password_expired"
  | "second_factor_missing"
  | "step_up_required"
  | "person_required"
  | "csrf"
  | "oidc_unavailable"
  | OidcRefusal;

export interface ProblemDetail {
  readonly message: string;
  readonly code?: ProblemCode | OperatorProblemCode | undefined;
  /** Dot-notation path of the offending request field, as the caller wrote it. */
  readonly field?: string | undefined;
}

/** A failure that is reported to the caller. Only `api/render-problem.ts` knows the envelope. */
export class Problem extends ExplainedError {
  readonly type: ProblemType;
  readonly status: number;
  readonly details: readonly ProblemDetail[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    type: ProblemType,
    message: string,
    options: {
      status?: number;
      details?: readonly ProblemDetail[];
      headers?: Readonly<Record<string, string>>;
      cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.type = type;
    this.status = options.status ?? PROBLEM_STATUS[type];
    this.details = options.details ?? [];
    this.headers = options.headers ?? {};
  }
}

/** `422 validation_error` about one request field. */
export function invalidField(field: string, message: string): Problem {
  return new Problem("validation_error", message, {
    details: [{ message, code: "invalid_input_data", field }],
  });
}

/** Missing and foreign resources get the same 404. Spec, Authentication 4. */
export function notFound(what: string): Problem {
  return new Problem("not_found", `${what} not found.`);
}
