import { Type } from "#lib/type.ts";
import { notAuthorised, notFound } from "#contract/failures.ts";
import { keyed } from "#contract/fields.ts";
import { json, type Operation } from "#contract/operation.ts";
import { blueprintKey } from "#contract/parameters.ts";

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

const triggerSchema = {
  ...keyed<unknown>(Type.Unknown(), "A JSON Schema (2020-12) of an object, with all its keywords."),
  title: "TriggerSchema",
};

export const readTriggerSchema: Operation = {
  id: "readTriggerSchema",
  method: "get",
  path: "/blueprints/{blueprintKey}/schema",
  tag: "Blueprints",
  summary: "Read the schema of a trigger",
  description:
    "Returns the current JSON Schema (2020-12) of this Blueprint's trigger body. Use it to generate types, and to detect misspelled keys in your code (the trigger ignores them; a validator that rejects `additionalProperties` does not).\n\nIt accepts every body that the trigger accepts. The trigger also refuses some bodies that a schema can't detect: a credential that does not exist or fits no slot, or a string that should contain JSON but doesn't.",
  parameters: [blueprintKey],
  answers: [
    {
      status: 200,
      description: "The schema.",
      content: json(triggerSchema, {
        invoices: {
          $schema: DIALECT,
          title: "Supplier invoices",
          type: "object",
          properties: {
            credential_id: { type: ["string", "array", "null"] },
            purchase_order: { title: "Purchase order", type: ["string", "number"] },
            period: { description: "An input: JSON, also as text." },
          },
          required: ["purchase_order"],
          additionalProperties: { description: "Ignored, without an error: no key of this Blueprint." },
        },
      }),
    },
  ],
  failures: [notAuthorised, notFound("Blueprint", "The API key's account has no such Blueprint.")],
  curl: {
    curl: `curl -sS "$BASE_URL/blueprints/$BLUEPRINT_KEY/schema" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};
