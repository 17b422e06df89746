// docs/nodes/group.md: one record of many, exact where numbers can be.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "#domain/json.ts";
import { validRecord, type DataRecord } from "#domain/record.ts";
import { batches, check, dataOf, recordFlow, recordsOf, runNode } from "./node-context.ts";

const group = async (config: JsonObject, data: readonly JsonObject[]): Promise<Json[]> =>
  await dataOf(
    (await runNode({ type: "group", from: "x", ...config }, { from: [recordFlow(data, 3)] })).flow,
  );
const messages = (config: JsonObject): readonly string[] =>
  check({ type: "group", from: "x", ...config }).map(({ path, message }) => `${path.join(".")}: ${message}`);
const field = async (aggregate: JsonObject, values: readonly Json[]): Promise<Json | undefined> => {
  const [record] = await group(
    { by: "g", fields: { out: aggregate } },
    values.map((v) => ({ g: 1, v })),
  );
  return (record as JsonObject)["out"];
};

test("groups come in the order of their first records, with every kind of field; null and nothing count nowhere", async () => {
  const lines = [
    { customer: "b", month: "2026-02-03", amount: 2, note: "x" },
    { customer: "a", month: "2026-01-31", amount: 10 },
    { customer: "b", month: "2026-02-28", amount: null, note: null },
    { customer: "b", month: "2026-02-01", amount: 1, note: "y" },
    { customer: "a", month: "2026-01-02", amount: 5, note: "z" },
    { customer: "b", month: "2026-03-01" },
  ];
  const by = { customer: "customer", month: "$substring(month, 0, 7)" };
  const fields = {
    lines: { count: true },
    noted: { count: "note" },
    total: { sum: "amount" },
    least: { min: "amount" },
    most: { max: "amount" },
    first: { first: "note" },
    last: { last: "note" },
    notes: { collect: "note" },
  };
  assert.deepEqual(await group({ by, fields }, lines), [
    {
      customer: "b",
      month: "2026-02",
      lines: 3,
      noted: 2,
      total: 3,
      least: 1,
      most: 2,
      first: "x",
      last: "y",
      notes: ["x", "y"],
    },
    {
      customer: "a",
      month: "2026-01",
      lines: 2,
      noted: 1,
      total: 15,
      least: 5,
      most: 10,
      first: "z",
      last: "z",
      notes: ["z"],
    },
    {
      customer: "b",
      month: "2026-03",
      lines: 1,
      noted: 0,
      total: null,
      least: null,
      most: null,
      first: null,
      last: null,
      notes: [],
    },
  ]);
  assert.deepEqual(await group({ by: "customer" }, lines), [{ customer: "b" }, { customer: "a" }]);
  assert.deepEqual(await group({ by: ["customer", "amount"] }, lines.slice(2, 4)), [
    { customer: "b", amount: null },
    { customer: "b", amount: 1 },
  ]);
  assert.deepEqual(await group({ by: "gone", fields: { n: { count: true } } }, lines), [{ n: 6 }]);
  assert.deepEqual(await group({ by: "g" }, [{ g: 1 }, { g: "1" }, { g: null }, {}]), [
    { g: 1 },
    { g: "1" },
    { g: null },
    {},
  ]);
  assert.deepEqual(await group({ by: "g" }, []), []);
});

test("sums are exact: tenths, large and small numbers, and decimals as texts, which give a text", async () => {
  const sum = { sum: "v" };
  assert.equal(await field(sum, [0.1, 0.2]), 0.3);
  assert.equal(await field(sum, [1e16, 1, -1e16]), 1);
  assert.equal(await field(sum, [1e300, 1e-300, -1e300]), 1e-300);
  assert.equal(
    await field(
      sum,
      Array.from({ length: 1_000 }, () => 0.001),
    ),
    1,
  );
  assert.equal(await field(sum, ["12.50", " -2.5 ", "+1"]), "11.00");
  assert.equal(await field(sum, ["99999999999999999999.99", "0.01"]), "100000000000000000000.00");
  assert.equal(await field(sum, ["-0.05", "0.01"]), "-0.04");
  assert.equal(await field(sum, [1, "0.10"]), "1.10");
  assert.equal(await field(sum, [null, null]), null);
  assert.equal(await field({ min: "v" }, [3, 1, 2]), 1);
  await assert.rejects(
    field(sum, [1e308, 1e308]),
    /fields\.out, record 0: the sum is too large for a number/,
  );
});

test("what is no number is named by its record and field, without the data", async () => {
  const fails = async (value: Json, what: string): Promise<void> =>
    await assert.rejects(field({ sum: "v" }, [1, value]), {
      name: "NodeFailure",
      message: `Record 1: fields.out.sum evaluates to ${what}; it must be a number, or a string such as "12.50".`,
    });
  await fails("1.234,50", "a string that is not a decimal number");
  await fails("secret", "a string that is not a decimal number");
  await fails("", "a string that is not a decimal number");
  await fails("9".repeat(101), "a string that is not a decimal number");
  await fails(true, "true");
  await fails([1], "a list");
  await assert.rejects(
    field(
      { collect: "v" },
      Array.from({ length: 10_001 }, () => 1),
    ),
    /The group of fields\.out, record 0: there are more than 10000 values, or 4000000 characters, to collect\./,
  );
});

test("a group with an invalid record is invalid, and says of how many", async () => {
  const bad: DataRecord = {
    data: { g: 1 },
    errors: [{ field: "g", code: "x", message: "m" }],
    isValid: false,
  };
  const from = {
    kind: "records",
    batches: batches([validRecord({ g: 1 }), bad, validRecord({ g: 2 })]),
  } as const;
  const { flow } = await runNode({ type: "group", from: "x", by: "g" }, { from: [from] });
  assert.deepEqual(await recordsOf(flow), [
    {
      data: { g: 1 },
      errors: [{ field: null, code: "group", message: "1 of the group's 2 records are invalid" }],
      isValid: false,
    },
    validRecord({ g: 2 }),
  ]);
});

test("12,000 records in 8,000 groups: sorted on disk, whole, and in order", async () => {
  const count = 12_000;
  const flow = recordFlow(
    Array.from({ length: count }, (_, index) => ({ g: (index * 7) % 8_000, n: index })),
    500,
  );
  const { flow: grouped } = await runNode(
    {
      type: "group",
      from: "x",
      by: "g",
      fields: { n: { count: true }, total: { sum: "n" }, first: { first: "n" } },
    },
    { from: [flow] },
  );
  const found = (await dataOf(grouped)) as { g: number; n: number; total: number; first: number }[];
  assert.equal(found.length, 8_000);
  assert.deepEqual(
    found.map(({ first }) => first),
    found.map((_, index) => index),
  );
  assert.deepEqual(found[3], { g: 21, n: 2, total: 3 + 8_003, first: 3 });
  assert.equal(
    found.reduce((sum, { total }) => sum + total, 0),
    (count * (count - 1)) / 2,
  );
});

test("check: names, one aggregate a field, and no field twice", () => {
  assert.deepEqual(messages({ by: ["a", "b"], fields: { n: { count: true } } }), []);
  assert.match(messages({})[0] ?? "", /schema/);
  assert.match(
    messages({ by: "$substring(a, 0, 7)" })[0] ?? "",
    /^by: `\$substring\(a, 0, 7\)` is not a field name; write `by: \{ <name>: <expression> \}`/,
  );
  assert.match(messages({ by: ["a", "a"] })[0] ?? "", /^by\.1: `a` is listed twice/);
  assert.match(
    messages({ by: { a: "a" }, fields: { a: { sum: "a" } } })[0] ?? "",
    /^fields\.a: `a` is a field of `by` already/,
  );
  assert.match(messages({ by: "a", fields: { b: { sum: "a", min: "a" } } })[0] ?? "", /schema/);
  assert.match(messages({ by: "a", fields: { b: {} } })[0] ?? "", /schema/);
  assert.match(messages({ by: "a", fields: { b: { count: false } } })[0] ?? "", /schema/);
});
