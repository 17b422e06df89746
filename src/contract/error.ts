import Type, { type Static } from "typebox";
import { PROBLEM_STATUS, type ProblemCode, type ProblemType } from "#domain/problem.ts";

/** Spec, Errors: `details[].code`; those after the first two are ours. What each one means, for the reference. */
export const DETAIL_CODES: Readonly<Record<ProblemCode, string>> = {
  invalid_input_data: "a field is malformed, names an unknown resource or fails its format",
  idempotency_key_reuse: "the `Idempotency-Key` was used earlier with a different request",
  idempotency_key_in_use: "a request with this `Idempotency-Key` is still being processed",
  run_data_purged: "the data of the run has been purged",
  queued_runs_quota: "as many runs of the account wait as may",
  stored_bytes_quota: "the account has as many bytes stored as it may",
};

const errorDetail = Type.Object(
  {
    message: Type.String({ description: "What is wrong, for people." }),
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
  { title: "ErrorDetail", description: "One thing that is wrong with the request." },
);

/** Spec, Error object: the one envelope of every failure. */
export const errorBody = Type.Object(
  {
    error: Type.Object(
      {
        // The one closed set among the strings of the interface.
        type: Type.Unsafe<ProblemType>({
          type: "string",
          enum: Object.keys(PROBLEM_STATUS),
          description: "What kind of failure it is.",
        }),
        message: Type.String({ description: "What happened, for people; not for code to branch on." }),
        details: Type.Optional(
          Type.Array(errorDetail, {
            description: "What is wrong, item by item; left out when there is nothing to name.",
          }),
        ),
      },
      { title: "ErrorObject", description: "What went wrong." },
    ),
  },
  { title: "Error", description: "The envelope of every failure: the single top-level key `error`." },
);

export type ErrorBody = Static<typeof errorBody>;
