// "Try it" has a field for each property of an input's schema, where fields are enough.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldsOfSchema, jsonOfFields, valuesOfJson } from "../../ui/pages/schema-fields.ts";

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

test("the fields begin with what an earlier value said, and with nothing if that was no object", () => {
  const fields = fieldsOfSchema(PERIOD) ?? assert.fail();
  const json = '{"from":"2026-11-01","days":30,"drafts":false,"unknown":1}';
  const values = valuesOfJson(fields, json);
  assert.deepEqual(values, { from: "2026-11-01", days: "30", drafts: "false" });
  assert.equal(jsonOfFields(fields, values), '{"from":"2026-11-01","days":30,"drafts":false}');
  for (const none of ["", "[1]", "null", "not JSON"]) assert.deepEqual(valuesOfJson(fields, none), {}, none);
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
