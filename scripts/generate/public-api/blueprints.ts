import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import {
  emptyKeyExample,
  errorExample,
  notAuthorised,
  notFound,
  refusedField,
  reportedConflict,
  tooLarge,
  unsupportedType,
} from "#contract/failures.ts";
import { EXAMPLE, id, runKey } from "#contract/fields.ts";
import { json, type Operation } from "#contract/operation.ts";
import { blueprintKey, idempotencyKey, prefer, queueOptions, reportedKeys } from "#contract/parameters.ts";

const ROUTED =
  "If the key is an INPUT node's `refKey`, the value of that input. If it is the name of a metadata item, stored with the run as text. Any other key is ignored.";

/** Spec, Top-level key routing: `credential_id`, as text or as a list (docs/api.md#credentials-of-a-trigger). */
const credentialIds = (description: string) =>
  Type.Optional(
    Type.Unsafe<string | readonly string[] | null>({
      type: ["string", "array", "null"],
      items: { type: "string" },
      description,
      examples: [EXAMPLE.credential, [EXAMPLE.credential]],
    }),
  );

const runName = (more: object) =>
  Type.Optional(
    Type.Unsafe<string | null>({
      maxLength: limits.nameCharactersMax,
      description:
        "The run's display name in the operator dashboard, at most 255 characters without U+0000. A value that is not a string is converted to one, like metadata.",
      examples: ["November invoices"],
      ...more,
    }),
  );

/** Spec, POST /blueprints/{blueprintKey}/trigger: an open object with its reserved keys. Every other key belongs to the Blueprint. */
export const triggerRequest = Type.Object(
  {
    credential_id: credentialIds(
      "The credentials with which the run logs in: one id, several ids separated by commas, or an array of ids.",
    ),
    credential_ids: credentialIds("An alias of `credential_id`; if both are given, their ids are combined."),
    run_name: runName({ type: ["string", "null"] }),
  },
  {
    title: "TriggerRequest",
    description:
      "The Blueprint's inputs and metadata. Strings are passed unchanged, objects and arrays as JSON with the digits of numbers as written; a key with `null` counts as omitted.",
    additionalProperties: Type.Unknown({ description: ROUTED }),
  },
);

/** The same in multipart: the part's name is the key, and a part may be a file. */
const triggerForm = Type.Object(
  {
    credential_id: Type.Optional(
      Type.String({
        description: "One id, or several separated by commas; a repeated part adds to the list.",
        examples: [EXAMPLE.credential],
      }),
    ),
    credential_ids: Type.Optional(
      Type.String({ description: "An alias of `credential_id`; if both are given, their ids are combined." }),
    ),
    run_name: runName({ type: "string" }),
  },
  {
    title: "TriggerForm",
    description:
      "The same keys as parts: the part's name is the key. An INPUT may be a file part or an inline string; a request may contain both kinds.",
    additionalProperties: Type.Unsafe<string>({
      type: "string",
      description: `${ROUTED} An INPUT's part may be a file.`,
    }),
  },
);

export const runAccepted = Type.Object(
  {
    id: id("run", "The run's id."),
    run_key: runKey,
    status: Type.String({ description: "Always `queued`: the run has not started.", examples: ["queued"] }),
  },
  { title: "RunAccepted", description: "A run that is queued." },
);

export type RunAcceptedBody = Static<typeof runAccepted>;

export const accepted: RunAcceptedBody = { id: EXAMPLE.run, run_key: EXAMPLE.runKey, status: "queued" };

export const triggerBlueprint: Operation = {
  id: "triggerBlueprint",
  method: "post",
  path: "/blueprints/{blueprintKey}/trigger",
  tag: "Blueprints",
  summary: "Trigger a run",
  description:
    "Queues a run of the Blueprint: `202` means that it is queued, not that it is done. Send JSON, or `multipart/form-data` if an INPUT is a file; keys are routed in the same way in both.\n\nThe checks are made in this order: 401, 429, 403 (the scope `runs`), 404, 403 (the Blueprint), the headers `Idempotency-Key` and `Latchkey-…` (422), the body (415, 413, 422), replay or 409, missing metadata (400), credentials (422), inputs (422), quotas of the account (429, 422). A refused request changes nothing; it may be corrected and sent again with the same `Idempotency-Key`.",
  parameters: [idempotencyKey, prefer, ...queueOptions, blueprintKey],
  body: {
    required: false,
    content: {
      "application/json": {
        schema: triggerRequest,
        examples: {
          invoices: {
            credential_id: EXAMPLE.credential,
            run_name: "November invoices",
            purchase_order: "PO-2026-17",
            period: { from: "2026-11-01" },
          },
        },
      },
      "multipart/form-data": {
        schema: triggerForm,
        examples: {
          order: {
            credential_id: EXAMPLE.credential,
            purchase_order: "PO-2026-17",
            order_file: "<bytes of order.csv>",
          },
        },
      },
    },
  },
  answers: [
    {
      status: 202,
      description: "The run is queued.",
      headers: ["Idempotent-Replay", ...reportedKeys],
      content: json(runAccepted, { accepted }),
    },
  ],
  failures: [
    {
      status: 400,
      description: "Required metadata items are missing: one detail for each, with its name in `field`.",
      headers: reportedKeys,
      examples: {
        missing_metadata: errorExample("validation_error", "Required metadata is missing.", [
          {
            code: "invalid_input_data",
            field: "purchase_order",
            message: 'The required metadata item "purchase_order" is missing.',
          },
        ]),
      },
    },
    notAuthorised,
    notFound("Blueprint", "The API key's account has no such Blueprint."),
    reportedConflict,
    tooLarge(
      "JSON: more than 5 MiB or more than 250,000 values. Multipart: a file over 50 MiB, inline parts over 5 MiB together or 1 MiB each, more than 20 files, 200 parts or 100 MiB in all.",
    ),
    unsupportedType(
      "The body is neither `application/json` in UTF-8 nor `multipart/form-data` with a boundary.",
      "application/json or multipart/form-data",
    ),
    {
      status: 422,
      description:
        "The `Idempotency-Key` or a `Latchkey-…` header, the body, a credential or an input is invalid. `details[].field` names it as the caller wrote it: `credential_id` or `credential_ids`, `run_name`, or the path inside an input (`period.from`).",
      headers: reportedKeys,
      examples: {
        credential_id: refusedField(
          "credential_id",
          "`credential_id` names a credential that does not exist in this account.",
        ),
        input: errorExample("validation_error", "An input of the Blueprint is invalid.", [
          { code: "invalid_input_data", field: "period.from", message: "must have required property 'from'" },
        ]),
        idempotency_key: emptyKeyExample,
      },
    },
  ],
  curl: {
    JSON: `curl -sS "$BASE_URL/blueprints/$BLUEPRINT_KEY/trigger" \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: invoices-2026-11" \\
  -d '{ "credential_id": "'"$CREDENTIAL_ID"'",
        "purchase_order": "PO-2026-17",
        "period": { "from": "2026-11-01" } }'`,
    "with a file": `curl -sS "$BASE_URL/blueprints/$BLUEPRINT_KEY/trigger" \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Idempotency-Key: order-4711" \\
  -F "credential_id=$CREDENTIAL_ID" \\
  -F "purchase_order=PO-2026-17" \\
  -F "order_file=@order.csv;type=text/csv"`,
  },
};
