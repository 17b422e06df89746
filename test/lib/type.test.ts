import assert from "node:assert/strict";
import { test } from "node:test";
import { Type as TypeBox } from "typebox";
import { Type } from "#lib/type.ts";

/** With the properties that are not enumerable, which `deepEqual` passes over, behind the others in their order. */
function whole(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(whole);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(Object.getOwnPropertyDescriptors(value))
    .map(([key, descriptor]) => [key, { ...descriptor, value: whole(descriptor.value) }] as const)
    .toSorted(([, one], [, other]) => Number(other.enumerable) - Number(one.enumerable));
}

/** Every builder, with and without options, with and without what is optional. */
const schemasOf = (type: typeof Type): readonly unknown[] => {
  const text = type.String({ minLength: 1, "x-says": "a name" });
  const either = type.Union([type.Literal("all"), type.Literal(1), type.Literal(true), type.Null()], {
    description: "One of them",
  });
  const closed = type.Object(
    {
      text,
      either: type.Optional(either),
      free: type.Optional(type.Unsafe<string>({ type: "string", format: "uri", default: "x" })),
      list: type.Array(type.Integer({ minimum: 1 }), { maxItems: 3 }),
    },
    { additionalProperties: false, description: "Closed" },
  );
  return [
    text,
    either,
    closed,
    type.Optional(closed),
    type.Object({}),
    type.Object({ only: type.Optional(type.Boolean()) }),
    type.Record(type.String({ minLength: 1 }), closed, { minProperties: 1 }),
    type.Record(type.String(), type.Unknown()),
    type.Record(type.String({ pattern: "^[a-z]+$" }), closed),
    type.Enum(["one", "two"], { default: "one" }),
    type.Enum([1, 2]),
    type.Array(type.Boolean({ default: false })),
    type.Union([type.String(), type.Integer()]),
    type.Unknown({ description: "Anything" }),
    type.Null({ title: "nothing" }),
    type.Literal("x", { title: "x" }),
    type.Unsafe(closed),
    [closed, type.Optional(closed), type.String(), { "~kind": "Object" }, null, undefined, "Object"].map(
      (each) => type.IsObject(each),
    ),
  ];
};

test("our builders give what TypeBox's give, hidden properties included", () => {
  const ours = schemasOf(Type).map(whole);
  for (const [index, theirs] of schemasOf(TypeBox).entries())
    assert.deepEqual(ours[index], whole(theirs), `${index}`);
});
