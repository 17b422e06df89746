// Our own check of our own schemas says what Ajv says, of every schema and of values around each of its limits.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { accountSchema, blueprintSchema, fieldSchema, strategySchema } from "#domain/config-schema.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { plainCheck } from "#domain/plain-schema.ts";
import { nodeTypes } from "#nodes/registry.ts";
import { loginTypes } from "#strategies/registry.ts";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";

type Schema = Readonly<Record<string, any>>;

const ajv = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false });

const OWN: readonly (readonly [string, Schema])[] = [
  ["account", accountSchema],
  ["strategy", strategySchema],
  ["blueprint", blueprintSchema],
  ["field", fieldSchema],
  ...[...nodeTypes].map(([name, { schema }]) => [`node ${name}`, schema] as const),
  ...[...loginTypes].map(([name, { schema }]) => [`login ${name}`, schema] as const),
  ...OPERATOR_OPERATIONS.flatMap(({ id, query, body }) =>
    [query, body].flatMap((schema) => (schema === undefined ? [] : [[id, schema] as const])),
  ),
];

/** Texts of about this length, also of characters that are two units of UTF-16. */
const texts = (length: number): fc.Arbitrary<string> =>
  fc.string({
    minLength: Math.max(0, length - 1),
    maxLength: length + 1,
    unit: fc.constantFrom("a", "Z", "0", "-", "😀"),
  });

/** Values that satisfy the schema, and values that just do not. */
function around(schema: Schema): fc.Arbitrary<unknown> {
  const other = fc.constantFrom<unknown>(null, true, 0, -1, 1.5, "", "x", [], {}, [null], { x: 1 });
  return fc.oneof({ weight: 9, arbitrary: fitting(schema) }, { weight: 1, arbitrary: other });
}

function fitting(schema: Schema): fc.Arbitrary<unknown> {
  if ("const" in schema) return fc.constant(schema["const"]);
  if (schema["enum"]) return fc.constantFrom(...schema["enum"]);
  if (schema["anyOf"]) return fc.oneof(...schema["anyOf"].map(around));
  const { type, items = {}, minLength = 0, maxLength = 3, minItems = 0, maxItems = 2 } = schema;
  if (type === "string") return fc.oneof(texts(minLength), texts(Math.min(maxLength, 300)));
  if (type === "boolean") return fc.boolean();
  if (type === "integer" || type === "number") {
    const { minimum = 0, maximum = 9 } = schema;
    return fc.constantFrom(minimum, minimum - 1, maximum, maximum + 1, minimum + 0.5);
  }
  if (type === "array")
    return fc.array(around(items), {
      minLength: Math.max(0, minItems - 1),
      maxLength: Math.min(maxItems + 1, 3),
    });
  if (type === "object") return objectsAround(schema);
  return fc.constantFrom<unknown>("x", 1, null, { a: [1] });
}

function objectsAround({
  properties = {},
  patternProperties = {},
  required = [],
}: Schema): fc.Arbitrary<unknown> {
  const named = Object.fromEntries(
    Object.entries(properties as Schema).map(([key, part]) => [key, around(part)] as const),
  );
  const wanted = fc.constantFrom(required, required, required, required.slice(1)) as fc.Arbitrary<string[]>;
  const values = Object.values(patternProperties as Schema).map(around);
  const more = fc.dictionary(
    fc.constantFrom("x", "Content-Type", "a_b", ""),
    fc.oneof(fc.constant("v"), ...values),
    {
      maxKeys: values.length > 0 ? 3 : 1,
    },
  );
  const own = wanted.chain((keys) => fc.record(named, { requiredKeys: keys }));
  return fc
    .tuple(
      own,
      fc.oneof(
        { weight: values.length > 0 ? 4 : 1, arbitrary: more },
        { weight: 4, arbitrary: fc.constant({}) },
      ),
    )
    .map(([first, second]) => ({ ...second, ...first }));
}

test("our check needs no library for our own schemas, and says what Ajv says", () => {
  const outcomes = { fits: 0, fails: 0 };
  for (const [name, schema] of OWN) {
    const check = plainCheck(schema);
    assert.ok(check, name);
    const theirs = ajv.compile(schema);
    fc.assert(
      fc.property(around(schema), (value) => {
        const fits = check(value);
        outcomes[fits ? "fits" : "fails"]++;
        assert.equal(fits, theirs(value), `${name}: ${JSON.stringify(value)}`);
      }),
      { numRuns: 40 },
    );
  }
  assert.ok(Math.min(outcomes.fits, outcomes.fails) > 500, JSON.stringify(outcomes));
});

test("every keyword holds at its limit, and says nothing of values of another type", () => {
  const values = [null, true, false, 0, 1, 2, 3, 1.5, "", "a", "ab", "abc", "😀", "😀😀", "😀😀😀", "b"];
  const lists = [
    [],
    [1],
    [1, 2],
    [1, 2, 3],
    ["a"],
    ["a", "a"],
    ["a", "b"],
    { a: 1 },
    { a: "a" },
    { b: 1 },
    { a: 1, b: 2 },
    {},
  ];
  const schemas: readonly Schema[] = [
    ...["array", "boolean", "integer", "null", "number", "object", "string"].map((type) => ({ type })),
    ...[0, 1, 2].flatMap((limit) =>
      [
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
      ].map((keyword) => ({ [keyword]: limit })),
    ),
    { const: "a" },
    { enum: [1, "a", null] },
    { pattern: "^a" },
    { pattern: "^.$" },
    { items: { type: "integer", maximum: 2 } },
    { items: { type: "string" }, uniqueItems: true },
    { required: ["a"] },
    { required: ["a", "b"] },
    { required: ["toString"] },
    { properties: { a: { type: "integer" } } },
    { properties: { a: {} }, additionalProperties: false },
    { properties: { a: true }, additionalProperties: { maximum: 1 } },
    { patternProperties: { "^a$": { type: "string" } } },
    { patternProperties: { "^a$": {} }, additionalProperties: false },
    { anyOf: [{ type: "integer" }, { type: "string", maxLength: 1 }] },
    { type: "string", title: "t", description: "d", default: 1, format: "date-time", "x-expression": "run" },
  ];
  for (const schema of schemas) {
    const check = plainCheck(schema);
    assert.ok(check, JSON.stringify(schema));
    const theirs = ajv.compile(schema);
    for (const value of [...values, ...lists]) {
      // Ajv takes what every object inherits for a member.
      const wanted = schema["required"]?.[0] === "toString" ? !isObject(value) : theirs(value);
      assert.equal(check(value), wanted, `${JSON.stringify(schema)} ${JSON.stringify(value)}`);
    }
  }
});

const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

test("a schema with other keywords, of an operator's node type, is checked by Ajv", () => {
  const others: readonly (readonly [schema: Schema, fits: unknown, fails: unknown])[] = [
    [{ type: "object", properties: { a: { not: { type: "string" } } } }, { a: 1 }, { a: "" }],
    [
      { type: "object", $defs: { n: { type: "integer" } }, properties: { a: { $ref: "#/$defs/n" } } },
      { a: 1 },
      { a: "" },
    ],
    [{ enum: [{ a: 1 }] }, { a: 1 }, { a: 2 }],
    [{ type: ["string", "null"] }, null, 1],
    [{ anyOf: [{ oneOf: [{ type: "string" }] }] }, "", 1],
    [{ items: { multipleOf: 2 } }, [2], [1]],
    [{ patternProperties: { a: { uniqueItems: true } } }, { a: [1] }, { a: [1, 1] }],
    [{ additionalProperties: { not: {} } }, {}, { a: 1 }],
    [{ constructor: "an unknown keyword", type: "string" }, "", 1],
  ];
  for (const [schema, fits, fails] of others) {
    assert.equal(plainCheck(schema), null);
    assert.equal(matchesSchema(schema, fits), true, JSON.stringify(schema));
    assert.equal(matchesSchema(schema, fails), false, JSON.stringify(schema));
  }
});
