import Type from "typebox";
import { notAuthorised, notFound } from "./failures.ts";
import { keyed } from "./fields.ts";
import { json, type Operation } from "./operation.ts";
import { blueprintKey } from "./parameters.ts";

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
    "Gives the JSON Schema (2020-12) of this Blueprint's trigger body, as it is now: to generate types from, and to catch misspelled keys on your side (the trigger ignores them; a validator that refuses `additionalProperties` does not).\n\nIt takes every body that the trigger takes. What a schema can't tell the trigger still refuses: a credential that does not exist or belongs to no slot, a string that should hold JSON and doesn't.",
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
  failures: [notAuthorised, notFound("Blueprint", "There is no such Blueprint in the account of the key.")],
  curl: {
    curl: `curl -sS "$BASE_URL/blueprints/$BLUEPRINT_KEY/schema" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};
