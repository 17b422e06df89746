import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { PROBLEM_STATUS, type ProblemCode, type ProblemType } from "#domain/problem.ts";

/** Spec, Errors: `details[].code`; all but the first two are ours. Descriptions for the reference. */
export const DETAIL_CODES: Readonly<Record<ProblemCode, string>> = {
  invalid_input_data: "a field is malformed, names an unknown resource or doesn't match its format",
  idempotency_key_reuse: "the `Idempotency-Key` was used earlier with a different request",
  idempotency_key_in_use: "a request with this `Idempotency-Key` is still being processed",
  run_data_purged: "the data of the run has been purged",
  queued_runs_quota: "the account has reached its limit of waiting runs",
  stored_bytes_quota: "the account has reached its limit of stored bytes",
};

const errorDetail = Type.Object(
  {
    message: Type.String({ description: "An explanation for people." }),
    code: Type.Optional(
      Type.Unsafe<string | null>({
        type: ["string", "null"],
        description: `Machine-readable code: ${Object.entries(DETAIL_CODES)
          .map(([code, meaning]) => `\`${code}\` (${meaning})`)
          .join(", ")}.`,
        examples: Object.keys(DETAIL_CODES),
      }),
    ),
    field: Type.Optional(
      Type.Unsafe<string | null>({
        type: ["string", "null"],
        description:
          "The offending field in dot notation, as the caller wrote it; the name of a header or query parameter.",
        examples: ["return_url", "items.0.sku", "Idempotency-Key"],
      }),
    ),
  },
  { title: "ErrorDetail", description: "One problem with the request." },
);

/** Spec, Error object: the envelope of every failure. */
export const errorBody = Type.Object(
  {
    error: Type.Object(
      {
        // The only closed set among the strings of the interface.
        type: Type.Unsafe<ProblemType>({
          type: "string",
          enum: Object.keys(PROBLEM_STATUS),
          description: "The kind of failure.",
        }),
        message: Type.String({ description: "An explanation for people. Code must not depend on it." }),
        details: Type.Optional(
          Type.Array(errorDetail, {
            description: "The problems, one by one; omitted if there is nothing to name.",
          }),
        ),
      },
      { title: "ErrorObject", description: "The error." },
    ),
  },
  { title: "Error", description: "The envelope of every failure: the single top-level key `error`." },
);

export type ErrorBody = Static<typeof errorBody>;
