import { lacksScopeText, type KeyScope } from "#domain/key-scope.ts";
import type { ProblemCode, ProblemType } from "#domain/problem.ts";
import type { ErrorBody } from "./error.ts";
import type { Failure } from "./operation.ts";
import { reportedKeys } from "./parameters.ts";

/** An error's body as the service sends it: a detail always has all three keys. */
export function errorExample(
  type: ProblemType,
  message: string,
  details: readonly {
    readonly code: ProblemCode;
    readonly field: string | null;
    readonly message?: string;
  }[] = [],
): ErrorBody {
  if (details.length === 0) return { error: { type, message } };
  return {
    error: {
      type,
      message,
      details: details.map((detail) => ({
        message: detail.message ?? message,
        code: detail.code,
        field: detail.field,
      })),
    },
  };
}

/** Failures that every operation under the base URL can return. Spec, Errors; docs/decisions/0011. */
export const COMMON_FAILURES: readonly Failure[] = [
  {
    status: 401,
    description:
      "The API key is missing, malformed or invalid. Checked before anything else, based only on the headers, even for unknown paths.",
    headers: ["WWW-Authenticate"],
    examples: {
      unauthenticated: errorExample(
        "authentication_error",
        "Missing or invalid API key. Send the header `Authorization: Bearer <API_KEY>`.",
      ),
    },
  },
  {
    status: 429,
    description:
      "The API key's rate limit was exceeded, or too many authentications from this address have failed. Wait for the time in `Retry-After`.",
    headers: ["Retry-After"],
    examples: {
      limited: errorExample(
        "rate_limit_exceeded",
        "Too many requests. Try again after the time in the header Retry-After.",
      ),
    },
  },
  {
    status: 431,
    description: "The request's headers are too large. The connection is closed after this answer.",
    examples: {
      headers: errorExample("validation_error", "The request is malformed: request header fields too large."),
    },
  },
  {
    status: 500,
    description:
      "An unexpected error. Sending the same request again with the same `Idempotency-Key` is safe.",
    examples: {
      unexpected: errorExample(
        "internal_error",
        "An unexpected error occurred. Quote the X-Request-Id header when you report it.",
      ),
    },
  },
  {
    status: 503,
    description:
      "The service is temporarily unavailable. Send the request again after `Retry-After` seconds.",
    headers: ["Retry-After"],
    examples: {
      unavailable: errorExample(
        "internal_error",
        "The service is not available at the moment. Try again shortly.",
      ),
    },
  },
  {
    status: "default",
    description:
      "The request is not valid HTTP, so no operation was found: 400, or 408 if it did not arrive in time. The connection is closed after this answer.",
    examples: {
      malformed: errorExample(
        "validation_error",
        "The request is malformed: one Host header, a path, and no Upgrade are expected.",
      ),
    },
  },
];

export const notFound = (what: string, description: string): Failure => ({
  status: 404,
  description,
  examples: { not_found: errorExample("not_found", `${what} not found.`) },
});

/** Spec, Authentication 3; docs/api.md#authentication. */
export const notAuthorised: Failure = {
  status: 403,
  description: "The API key is limited to other Blueprints of the account, or lacks the scope `runs`.",
  examples: {
    other_blueprint: errorExample("authorization_error", "The API key is not authorised for this Blueprint."),
  },
};

/** A key without the scope for it. */
export const lacksScope = (scope: Exclude<KeyScope, "runs">): Failure => ({
  status: 403,
  description: `The API key lacks the scope \`${scope}\`.`,
  examples: { scope: errorExample("authorization_error", lacksScopeText(scope)) },
});

const REUSED = "The Idempotency-Key was used earlier with a different request.";
const IN_USE = "A request with this Idempotency-Key is still being processed. Try again in a second.";

/** Spec, Idempotency 4; docs/decisions/0010. */
export const idempotencyConflict: Failure = {
  status: 409,
  description:
    "The `Idempotency-Key` was used within the last 24 hours for a different request (`idempotency_key_reuse`), or the first request with it has taken longer than 8 s and is still being processed (`idempotency_key_in_use`, with `Retry-After`).",
  headers: ["Retry-After"],
  examples: {
    reuse: errorExample("conflict", REUSED, [{ code: "idempotency_key_reuse", field: "Idempotency-Key" }]),
    in_use: errorExample("conflict", IN_USE, [{ code: "idempotency_key_in_use", field: "Idempotency-Key" }]),
  },
};

/** The same where the body has been read before. */
export const reportedConflict: Failure = {
  ...idempotencyConflict,
  headers: [...(idempotencyConflict.headers ?? []), ...reportedKeys],
};

/** The example of a field that is refused. */
export const refusedField = (field: string, message: string): ErrorBody =>
  errorExample("validation_error", message, [{ code: "invalid_input_data", field }]);

/** The example of a 422 that every operation with an `Idempotency-Key` can return. */
export const emptyKeyExample = refusedField(
  "Idempotency-Key",
  "The header Idempotency-Key must not be empty; leave it out to send the request without one.",
);

/** An operation without a body can refuse the key alone. */
export const invalidKey: Failure = {
  status: 422,
  description: "The `Idempotency-Key` header is empty, too long or sent twice.",
  examples: { idempotency_key: emptyKeyExample },
};

export const tooLarge = (description: string): Failure => ({
  status: 413,
  description,
  examples: { body: errorExample("validation_error", "The body is too large.") },
});

export const unsupportedType = (description: string, wanted: string): Failure => ({
  status: 415,
  description,
  examples: {
    content_type: errorExample(
      "validation_error",
      `The body must be ${wanted}; say so in the Content-Type header.`,
    ),
  },
});
