import { test } from "node:test";
import assert from "node:assert/strict";
import { validRecord, type DataRecord, type RecordBatches } from "#domain/record.ts";
import { NodeFailure } from "#nodes/define-node.ts";
import { batches, check, dataOf, recordFlow, recordsOf, runNode } from "./node-context.ts";

const invalid: DataRecord = {
  data: { n: 9 },
  errors: [{ field: "n", code: "old", message: "was wrong" }],
  isValid: false,
};
const mixed = () => [{ kind: "records", batches: batches([validRecord({ n: 1 }), invalid]) }] as const;

test("map: fields make a new record, a field that gives nothing is left out, errors and isValid stay", async () => {
  const { flow } = await runNode(
    {
      type: "map",
      from: "x",
      fields: { twice: "n * 2", at: "$index", missing: "nope", was: "$errors[0].code", ok: "$isValid" },
    },
    { from: mixed() },
  );
  assert.deepEqual(await recordsOf(flow), [
    { data: { twice: 2, at: 0, ok: true }, errors: [], isValid: true },
    { data: { twice: 18, at: 1, was: "old", ok: false }, errors: invalid.errors, isValid: false },
  ]);
});

test("map: an expression makes one record, several, or none", async () => {
  const from = [recordFlow([{ items: [{ a: 1 }, { a: 2 }] }, { items: { a: 3 } }, {}, { items: null }])];
  const { flow } = await runNode({ type: "map", from: "x", expression: "items" }, { from });
  assert.deepEqual(await dataOf(flow), [{ a: 1 }, { a: 2 }, { a: 3 }]);
  const { flow: bad } = await runNode(
    { type: "map", from: "x", expression: "n" },
    { from: [recordFlow([{}, { n: "secret-7" }])] },
  );
  await assert.rejects(recordsOf(bad), {
    name: "NodeFailure",
    message:
      "Record 1: expression evaluates to a string; it must be an object, a list of objects, or nothing.",
  });
});

test("map: a failing expression fails the node, with record and field and without the value", async () => {
  const from = [recordFlow([{ n: "1" }, { n: "secret-4711" }], 1)];
  const { flow } = await runNode({ type: "map", from: "x", fields: { total: "$number(n)" } }, { from });
  await assert.rejects(recordsOf(flow), (error: Error) => {
    assert(error instanceof NodeFailure);
    assert.equal(
      error.message,
      "Record 1: fields.total: expression `$number(n)`: a value can't be converted to a number (at character 8)",
    );
    return true;
  });
});

test("map: needs exactly one of fields and expression", () => {
  assert.match(check({ type: "map" })[0]?.message ?? "", /either/);
  assert.match(check({ type: "map", fields: { a: "1" }, expression: "$" })[0]?.message ?? "", /either/);
  assert.match(check({ type: "map", feilds: { a: "1" } })[0]?.message ?? "", /schema/);
});

test("filter: true keeps; false, null and nothing drop; anything else fails", async () => {
  const from = () => [
    recordFlow([{ n: 1, ok: true }, { n: 2, ok: false }, { n: 3 }, { n: 4, ok: null }, { n: 5, ok: true }]),
  ];
  const { flow } = await runNode({ type: "filter", from: "x", where: "ok" }, { from: from() });
  assert.deepEqual(
    (await dataOf(flow)).map((data) => (data as { n: number }).n),
    [1, 5],
  );
  const { flow: bad } = await runNode({ type: "filter", from: "x", where: "n" }, { from: from() });
  await assert.rejects(recordsOf(bad), /Record 0: where evaluates to a number; it must be true or false/);
  const second = [recordFlow([{ ok: true }, { ok: "secret" }], 1)];
  const { flow: late } = await runNode({ type: "filter", from: "x", where: "ok" }, { from: second });
  await assert.rejects(recordsOf(late), { message: /^Record 1: where evaluates to a string; / });
});

test("filter: a `from` of several nodes is one after the other, and $index counts over all", async () => {
  const from = [recordFlow([{ n: 1 }, { n: 2 }], 1), recordFlow([{ n: 3 }])];
  const { flow } = await runNode({ type: "filter", from: ["x", "y"], where: "$index > 0" }, { from });
  assert.deepEqual(await dataOf(flow), [{ n: 2 }, { n: 3 }]);
});

test("validate: errors of schema and rules are appended, with dot paths and codes", async () => {
  const schema = {
    type: "object",
    required: ["number"],
    properties: {
      total: { type: "number", minimum: 0 },
      a: { type: "object", additionalProperties: false, required: ["b"] },
      p: { pattern: "^x" },
      q: { pattern: "^y" },
    },
  };
  const rules = [
    { assert: "total < 100", field: "total", message: "Too much", code: "cap" },
    { assert: "$number(text) > 0" },
  ];
  const from = [
    {
      kind: "records",
      batches: batches([
        validRecord({ total: -1, a: { "c/d": 1 }, p: "x", q: "x", text: "abc" }),
        { ...invalid, data: { number: 1, total: 1, text: "1" } },
      ]),
    },
  ] as const;
  const { flow } = await runNode({ type: "validate", from: "x", schema, rules }, { from });
  const [first, second] = await recordsOf(flow);
  assert.equal(first?.isValid, false);
  assert.deepEqual(
    first.errors.map(({ field, code }) => `${field} ${code}`).toSorted((a, b) => a.localeCompare(b)),
    [
      "a.b required",
      "a.c/d additionalProperties",
      "null rule",
      "number required",
      "q pattern",
      "total minimum",
    ],
  );
  assert.deepEqual(first.errors.at(-1), {
    field: null,
    code: "rule",
    message: "Rule not met: $number(text) > 0",
  });
  assert.deepEqual(second, { ...invalid, data: { number: 1, total: 1, text: "1" } });
});

test("validate: a rule is met only by true", async () => {
  const rules = [{ assert: "due >= '2020'", field: "due", message: "Due date is too old", code: "old" }];
  const { flow } = await runNode(
    { type: "validate", from: "x", rules },
    { from: [recordFlow([{ due: "2021" }, { due: "2019" }, {}, { due: 3 }])] },
  );
  const records = await recordsOf(flow);
  assert.deepEqual(
    records.map((record) => record.isValid),
    [true, false, false, false],
  );
  assert.deepEqual(records[1]?.errors, [{ field: "due", code: "old", message: "Due date is too old" }]);
});

test("validate: a rule that takes too long fails the node, and is no error of the record", async () => {
  const rules = [{ assert: "$exists(ok)" }, { assert: "($f := function(){ $f() }; ok ? true : $f())" }];
  const { flow } = await runNode(
    { type: "validate", from: "x", rules },
    { from: [recordFlow([{ ok: true }, { ok: false }])] },
  );
  await assert.rejects(recordsOf(flow), /Record 1: rules\.1: .*took longer than 1 s/);
});

test("validate: on_invalid drop leaves out, fail fails with the counts and lets nothing flow after the first", async () => {
  const schema = { properties: { n: { maximum: 2 } } };
  const from = () => [recordFlow([{ n: 1 }, { n: 3 }, { n: 2 }, { n: 4 }], 1)];
  const { flow: dropped } = await runNode(
    { type: "validate", from: "x", schema, on_invalid: "drop" },
    { from: from() },
  );
  assert.deepEqual(await dataOf(dropped), [{ n: 1 }, { n: 2 }]);
  const { flow: failing } = await runNode(
    { type: "validate", from: "x", schema, on_invalid: "fail" },
    { from: from() },
  );
  assert(failing?.kind === "records");
  const flowed: DataRecord[] = [];
  await assert.rejects(
    async () => {
      for await (const batch of failing.batches) flowed.push(...batch);
    },
    { message: "2 of 4 records are invalid, and on_invalid is fail." },
  );
  assert.deepEqual(
    flowed.map((record) => record.data),
    [{ n: 1 }],
  );
});

test("validate: check refuses a schema that does not compile, and a node with nothing to check", () => {
  const problem = (schema: object) => check({ type: "validate", schema: schema as never })[0]?.message ?? "";
  assert.match(problem({ type: "nope" }), /not a JSON Schema/);
  assert.match(problem({ requird: ["a"] }), /unknown keyword: "requird"/);
  assert.match(problem({ pattern: "(?=a)b" }), /linear time/);
  assert.match(problem({ $ref: "https://example.com/other" }), /can't resolve reference/);
  assert.match(problem({ format: "emali" }), /unknown format/);
  assert.match(check({ type: "validate" })[0]?.message ?? "", /schema/);
});

test("10,000 records stream through map, filter, validate and output in batches, never held as a set", async () => {
  let made = 0;
  let written = 0;
  let ahead = 0;
  const source = async function* (): RecordBatches {
    for (let batch = 0; batch < 20; batch += 1) {
      const records = Array.from({ length: 500 }, (_, index) => validRecord({ n: batch * 500 + index }));
      made += records.length;
      ahead = Math.max(ahead, made - written);
      yield records;
    }
  };
  const mapped = await runNode(
    { type: "map", from: "x", expression: "[{'n': n}, {'n': -n - 1}]" },
    { from: [{ kind: "records", batches: source() }] },
  );
  assert(mapped.flow);
  const kept = await runNode({ type: "filter", from: "x", where: "n >= 0" }, { from: [mapped.flow] });
  assert(kept.flow);
  const checked = await runNode(
    { type: "validate", from: "x", schema: { properties: { n: { maximum: 9_989 } } } },
    { from: [kept.flow] },
  );
  assert(checked.flow);
  const counts = new Map<string | null, number>();
  const handles = { good: { from: "x", where: "$isValid" }, bad: { from: "x", where: "$not($isValid)" } };
  await runNode(
    { type: "output", refKey: "r", handles },
    {
      from: [checked.flow],
      context: {
        writeResult: async (handle, output) => {
          for await (const batch of output) {
            assert(batch.length <= 500);
            written += batch.length;
            counts.set(handle, (counts.get(handle) ?? 0) + batch.length);
          }
        },
      },
    },
  );
  assert.deepEqual(
    [...counts],
    [
      ["good", 9_990],
      ["bad", 10],
    ],
  );
  assert(ahead <= 1_500, `${ahead} records were made before they were written`);
});
