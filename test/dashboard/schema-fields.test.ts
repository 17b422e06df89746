// "Try it" has a field for each property of an input's schema, where fields are enough.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldsOfSchema, jsonOfFields } from "../../ui/pages/schema-fields.ts";

const PERIOD = {
  type: "object",
  required: ["from"],
  properties: {
    from: { type: "string", format: "date", title: "First day" },
    days: { type: "integer", description: "How many" },
    drafts: { type: "boolean" },
    sort: { enum: ["asc", "desc"] },
  },
};

test("an object of plain properties has a field for each", () => {
  const fields = fieldsOfSchema(PERIOD) ?? assert.fail();
  assert.deepEqual(
    fields.map(({ name, label, kind, isRequired }) => [name, label, kind, isRequired]),
    [
      ["from", "First day", "date", true],
      ["days", "Days", "number", false],
      ["drafts", "Drafts", "boolean", false],
      ["sort", "Sort", "choice", false],
    ],
  );
  const typed = { from: "2026-11-01", days: "30", drafts: "false", sort: "" };
  assert.equal(jsonOfFields(fields, typed), '{"from":"2026-11-01","days":30,"drafts":false}');
  assert.equal(jsonOfFields(fields, { days: "many" }), '{"days":"many"}', "the service refuses it by name");
  assert.equal(jsonOfFields(fields, {}), "");
});

test("what needs more than fields is typed as JSON", () => {
  for (const schema of [
    null,
    true,
    { type: "array" },
    { type: "object" },
    { type: "object", properties: { lines: { type: "array" } } },
    { type: "object", properties: { a: { type: ["string", "null"] } } },
    { type: "object", properties: { a: { enum: ["x", 1] } } },
  ])
    assert.equal(fieldsOfSchema(schema), null, JSON.stringify(schema));
});
