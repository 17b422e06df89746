import assert from "node:assert/strict";
import { test } from "node:test";
import Type from "typebox";
import { checkShape } from "#actions/config/check-shape.ts";
import { findExpressions } from "#domain/config-expressions.ts";
import { formatPath } from "#domain/config-problem.ts";
import { EXPRESSION, TEMPLATE } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";

const closed = { additionalProperties: false };
const expression = Type.String({ [EXPRESSION]: "record" });

/** A union as an `extract` of a login has it. */
const way = Type.Union([
  Type.Object({ css: Type.String(), attr: Type.Optional(Type.String()) }, closed),
  Type.Object({ json: expression }, closed),
  Type.Object({ header: Type.String() }, closed),
]);

const shape = (schema: Parameters<typeof checkShape>[0], value: Json) =>
  checkShape(schema, value, ["at"]).map(({ path, message }) => `${formatPath(path)} ${message}`);

test("of a union only the closest branch is reported", () => {
  assert.deepEqual(shape(way, { css: "a", atr: "href" }), ["at.atr unknown key `atr`; did you mean `attr`?"]);
  assert.deepEqual(shape(way, { json: 5 }), ["at.json must be text; put `5` in quotes"]);
  assert.deepEqual(shape(way, { heder: "x" }), [
    "at the key `header` is missing; add it",
    "at.heder unknown key `heder`; did you mean `header`?",
  ]);
  assert.deepEqual(shape(way, "a"), ["at must be keys with values, not text"]);
});

test("a union of constants lists them", () => {
  const choice = Type.Union([Type.Literal("mark"), Type.Literal("drop"), Type.Literal(0)]);
  assert.deepEqual(shape(choice, "makr"), ["at must be one of `mark`, `drop`, `0`; did you mean `mark`?"]);
  assert.deepEqual(shape(Type.Union([choice, Type.Array(Type.String())]), true), [
    "at must be `mark`, `drop`, `0`, or a list",
  ]);
});

test("unions inside unions inside lists", () => {
  const schema = Type.Array(Type.Union([Type.String(), Type.Object({ way }, closed)]));
  assert.deepEqual(shape(schema, ["x", { way: { css: 1 } }, 7]), [
    "at[1].way.css must be text; put `1` in quotes",
    "at[2] must be text or keys with values; put `7` in quotes",
  ]);
});

test("expressions and templates are found wherever a schema can hold them", () => {
  const schema = Type.Object({
    where: expression,
    rules: Type.Array(Type.Object({ assert: expression })),
    fields: Type.Record(Type.String(), expression),
    pattern: Type.Record(Type.String({ pattern: "^x" }), expression),
    request: Type.Object({
      url: Type.String({ [TEMPLATE]: "run" }),
      json: Type.Unsafe<Json>({ [TEMPLATE]: "run" }),
    }),
    ways: Type.Record(Type.String(), way),
    plain: Type.String(),
  });
  const found = findExpressions(schema, {
    where: "a",
    rules: [{ assert: "b" }, 5],
    fields: { "x.y": "c", z: 1 },
    pattern: { x: "d", y: "not an expression" },
    request: { url: "e", json: { deep: ["f"] } },
    ways: { one: { json: "g" }, two: { css: "h" } },
    plain: "i",
    unknown: "j",
  });
  assert.deepEqual(
    found.map((place) => [
      place.form,
      formatPath(place.path),
      place.scope,
      place.form === "expression" ? place.source : place.template,
    ]),
    [
      ["expression", "where", "record", "a"],
      ["expression", "rules[0].assert", "record", "b"],
      ["expression", 'fields["x.y"]', "record", "c"],
      ["expression", "pattern.x", "record", "d"],
      ["template", "request.url", "run", "e"],
      ["template", "request.json", "run", { deep: ["f"] }],
      ["expression", "ways.one.json", "record", "g"],
    ],
  );
});
