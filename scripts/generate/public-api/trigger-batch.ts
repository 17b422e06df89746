import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { errorBody } from "#contract/error.ts";
import {
  errorExample,
  notAuthorised,
  notFound,
  refusedField,
  tooLarge,
  unsupportedType,
} from "#contract/failures.ts";
import { EXAMPLE } from "#contract/fields.ts";
import { json, type Operation } from "#contract/operation.ts";
import { blueprintKey, idempotencyKey, queueOptions } from "#contract/parameters.ts";
import { accepted, runAccepted, triggerRequest } from "./blueprints.ts";

const { triggerBatchMax } = limits;

const item = Type.Object(
  {
    idempotency_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: limits.idempotencyKeyCharactersMax,
        description: "As the header of a single trigger.",
        examples: ["invoices-77-2026-11"],
      }),
    ),
    delay_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: limits.runDelayMsMax / 1_000,
        description: "As the header `Latchkey-Delay`.",
      }),
    ),
    priority: Type.Optional(
      Type.Integer({
        minimum: -limits.runPriorityMax,
        maximum: limits.runPriorityMax,
        description: "As the header `Latchkey-Priority`.",
      }),
    ),
    expires_in_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.runExpiryMsMax / 1_000,
        description: "As the header `Latchkey-Expires-In`.",
      }),
    ),
    trigger: Type.Optional(triggerRequest),
  },
  {
    title: "TriggerBatchItem",
    description:
      "One trigger: its body, and what are headers of a single trigger. What it does not say is as the request's headers say.",
    additionalProperties: false,
  },
);

const request = Type.Object(
  {
    triggers: Type.Array(item, {
      minItems: 1,
      maxItems: triggerBatchMax,
      description: `1 to ${triggerBatchMax} triggers. They are checked and answered one by one.`,
    }),
  },
  { title: "TriggerBatchRequest", description: "Triggers of one Blueprint.", additionalProperties: false },
);

const answer = Type.Object(
  {
    status: Type.Integer({
      description: "The status of the trigger: `202`, or that of its refusal.",
      examples: [202],
    }),
    replayed: Type.Boolean({
      description: "Whether its idempotency key was used before, and this is the answer of that time.",
    }),
    retry_after_seconds: Type.Unsafe<number | null>({
      type: ["integer", "null"],
      description: "When it may be sent again, where that is known; otherwise `null`.",
    }),
    body: Type.Union([runAccepted, errorBody]),
  },
  { title: "TriggerBatchAnswer", description: "What the trigger would have been answered by itself." },
);

const answers = Type.Object(
  { answers: Type.Array(answer, { description: "One for each trigger, in their order." }) },
  { title: "TriggerBatchAnswers", description: "The answers to a batch." },
);

const unknownCredential = {
  status: 422,
  replayed: false,
  retry_after_seconds: null,
  body: refusedField(
    "credential_id",
    "`credential_id` names a credential that does not exist in this account.",
  ),
};

export const triggerBlueprintBatch: Operation = {
  id: "triggerBlueprintBatch",
  method: "post",
  path: "/blueprints/{blueprintKey}/trigger-batch",
  tag: "Blueprints",
  summary: "Trigger many runs",
  description: `Sends up to ${triggerBatchMax} triggers of one Blueprint. Each is checked, executed and answered as if it had been sent by itself: one that is refused leaves the others alone, each counts for the rate limit, and each has its own idempotency. Bodies are JSON; a trigger with files is sent by itself.\n\nThe status of the response is \`200\` whatever becomes of the triggers: look at each answer.`,
  parameters: [
    {
      ...idempotencyKey,
      description:
        "For triggers without an `idempotency_key` of their own: each is identified by this key and its place in the list, so the same batch may be sent again.",
    },
    ...queueOptions,
    blueprintKey,
  ],
  body: {
    required: true,
    content: json(request, {
      invoices: {
        triggers: [
          {
            idempotency_key: "invoices-77-2026-11",
            trigger: {
              credential_id: EXAMPLE.credential,
              purchase_order: "PO-2026-17",
              period: { from: "2026-11-01" },
            },
          },
          {
            idempotency_key: "invoices-78-2026-11",
            delay_seconds: 900,
            trigger: {
              credential_id: "cred_0VbbSVh0000000000000000000",
              purchase_order: "PO-2026-18",
              period: { from: "2026-11-01" },
            },
          },
        ],
      },
    }),
  },
  answers: [
    {
      status: 200,
      description: "Each trigger was answered.",
      content: json(answers, {
        answers: {
          answers: [
            { status: 202, replayed: false, retry_after_seconds: null, body: accepted },
            unknownCredential,
          ],
        },
      }),
    },
  ],
  failures: [
    notAuthorised,
    notFound("Blueprint", "The API key's account has no such Blueprint."),
    tooLarge("More than 5 MiB or more than 250,000 values."),
    unsupportedType("The body is not `application/json` in UTF-8.", "application/json"),
    {
      status: 422,
      description:
        "A header is invalid, or the body is no list of triggers. What is wrong with one trigger is in its answer.",
      examples: {
        triggers: errorExample(
          "validation_error",
          `\`triggers\` must be a list of 1 to ${triggerBatchMax} triggers.`,
          [{ code: "invalid_input_data", field: "triggers" }],
        ),
      },
    },
  ],
  curl: {
    curl: `curl -sS "$BASE_URL/blueprints/$BLUEPRINT_KEY/trigger-batch" \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: invoices-2026-11-28" \\
  -d '{ "triggers": [
        { "trigger": { "credential_id": "'"$CREDENTIAL_ID"'",
                       "purchase_order": "PO-2026-17",
                       "period": { "from": "2026-11-01" } } },
        { "delay_seconds": 900,
          "trigger": { "credential_id": "'"$CREDENTIAL_ID"'",
                       "purchase_order": "PO-2026-18",
                       "period": { "from": "2026-11-01" } } } ] }'`,
  },
};
