// docs/blueprints.md#nodes: parse, map, filter, validate and output, and what their expressions see.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";

let bench: Bench;

const LIST =
  "- { id: given, type: input, refKey: given }\n- { id: list, type: parse, from: given, format: json }\n";
const over = (nodes: string, from: string) =>
  `${LIST}${nodes}\n- { id: out, type: output, refKey: out, from: ${from} }`;

const CHECKED = `- id: checked
  type: validate
  from: list
  schema: { type: object, required: [total], properties: { total: { type: number, minimum: 0 }, code: { type: string, pattern: "^[A-Z]+$" } } }
  rules:
    - { assert: due >= "2020-01-01", field: due, message: Due date is too old, code: too_old }
    - { assert: $uppercase(code) = code }`;

const CASES: Readonly<Record<string, string>> = {
  "parse-json": over(
    "- { id: rows, type: parse, from: given, format: json, records: 'items[kind != $inputs.given].{\"k\": kind}' }",
    "rows",
  ),
  "parse-html": over(
    `- { id: rows, type: parse, from: given, format: html, rows: li, columns: { text: ":scope", id: "@id", strong: b } }`,
    "rows",
  ).replace("- { id: list, type: parse, from: given, format: json }\n", ""),
  "parse-many": `- { id: a, type: input, refKey: a }\n- { id: b, type: input, refKey: b }\n- { id: rows, type: parse, from: [b, a], format: csv }\n- { id: out, type: output, refKey: out, from: rows }`,
  fields: over(
    `- { id: made, type: map, from: list, fields: { i: $index, n: number, sum: $sum(lines.price), none: missing, null: nothing, whole: $, po: $metadata.po, key: "$run.key = $metadata.po", name: $run.name, all: "$count($nodes.list)", first: "$nodes.list[0].number", valid: $isValid, errors: $errors } }`,
    "made",
  ),
  expression: over(
    `- { id: made, type: map, from: list, expression: 'lines.{ "of": %.number, "price": price }' }`,
    "made",
  ),
  chain: over(
    `- { id: made, type: map, from: list, expression: 'lines.{ "of": %.number, "price": price, "at": $index }' }
- { id: dear, type: filter, from: made, where: price >= 5 }
- { id: again, type: map, from: dear, fields: { of: of, at: $index, old: at } }`,
    "again",
  ),
  "filter-many": over(
    "- { id: odd, type: filter, from: [list, list2], where: 'number % 2 = 1 or $index = 3' }\n- { id: list2, type: parse, from: given, format: json }",
    "odd",
  ),
  "filter-bad": over("- { id: odd, type: filter, from: list, where: number }", "odd"),
  mark: over(CHECKED, "checked"),
  drop: over(`${CHECKED}\n  on_invalid: drop`, "checked"),
  fail: over(`${CHECKED}\n  on_invalid: fail`, "checked"),
  handles: over(
    `${CHECKED}
- { id: again, type: validate, from: checked, rules: [{ assert: $isValid or $count($errors) < 3, message: Too many mistakes }] }
- { id: shown, type: map, from: again, fields: { code: code, wrong: $errors.field } }
- id: parts
  type: output
  refKey: parts
  handles:
    good: { from: shown, where: $isValid }
    bad: { from: shown, where: $not($isValid) }
    all: { from: list }
    late: { from: again, where: "$index > 0" }
- { id: one, type: output, refKey: one, handles: { only: { from: shown } } }`,
    "[shown, list]",
  ),
};

before(async () => {
  bench = await openBench(
    Object.entries(CASES).map(([key, nodes]) => blueprint(key, nodes, "metadata: [{ name: po }]")),
  );
});
after(() => bench?.[Symbol.asyncDispose]());

const ORDERS = [
  { number: 1, lines: [{ price: 5 }, { price: 2.5 }], nothing: null },
  { number: 2, lines: [] },
  { number: 3, lines: [{ price: 7 }] },
];
const given = (value: unknown) => ({ given: value, po: "PO 9", run_name: "Späti" });

test("parse: records of a JSON text, rows of an HTML text, several values one after the other", async () => {
  const html = `<ul><li id=a> x <b>y</b></li><li>z</ul>`;
  assert.deepEqual(dataOf(await bench.run("parse-html", { given: html })), [
    { text: "x y", id: "a", strong: "y" },
    { text: "z", id: null, strong: null },
  ]);
  const run = await bench.run("parse-json", { given: '{"items":[{"kind":"a"},{"kind":"b"}]}' });
  assert.deepEqual(dataOf(run), [{ k: "a" }, { k: "b" }]);
  assert.deepEqual(dataOf(await bench.run("parse-many", { a: "x,y\n1,2", b: "y\n3" })), [
    { y: "3" },
    { x: "1", y: "2" },
  ]);
  // A value that was not sent is no record.
  assert.deepEqual(dataOf(await bench.run("parse-many", { a: "x\n1" })), [{ x: "1" }]);
});

test("map fields: the record at the root, everything else a variable; what gives nothing is left out", async () => {
  const run = await bench.run("fields", given(ORDERS));
  assert.equal(run.status.status, "completed", String(run.detail));
  const [first, second] = dataOf(run);
  assert.deepEqual(first, {
    i: 0,
    n: 1,
    sum: 7.5,
    null: null,
    whole: ORDERS[0],
    po: "PO 9",
    key: false,
    name: "Späti",
    all: 3,
    first: 1,
    valid: true,
    errors: [],
  });
  assert.deepEqual([second.i, second.n], [1, 2]);
  const named = await bench.run("fields", { given: [{}] });
  assert.deepEqual(dataOf(named)[0], { i: 0, whole: {}, key: false, all: 1, valid: true, errors: [] });
});

test("map expression: a list makes several records, an object one, nothing none; $index counts over the whole set", async () => {
  assert.deepEqual(dataOf(await bench.run("expression", given(ORDERS))), [
    { of: 1, price: 5 },
    { of: 1, price: 2.5 },
    { of: 3, price: 7 },
  ]);
  assert.deepEqual(dataOf(await bench.run("chain", given(ORDERS))), [
    { of: 1, at: 0, old: 0 },
    { of: 3, at: 1, old: 2 },
  ]);
});

test("filter keeps what is true, over several sources; anything but true, false or nothing fails the node by name", async () => {
  assert.deepEqual(
    dataOf(await bench.run("filter-many", given(ORDERS))).map(({ number }) => number),
    [1, 3, 1, 3],
  );
  const run = await bench.run("filter-bad", given([{ other: 1 }, { number: 8 }]));
  assert.match(
    String(run.detail),
    /^Node odd: Record 1: where evaluates to a number; it must be true or false/,
  );
  assert.deepEqual(
    [run.kind, run.status.error.message],
    ["data", "The run did not complete. The operator's dashboard shows why."],
  );
});

const RECORDS = [
  { total: 3, code: "AB", due: "2024-05-01" },
  { total: -1, code: "ab", due: "2019-01-01" },
  { code: "CD", due: "2024-05-01" },
];

test("validate marks: data untouched, an error for each mistake, by field and code", async () => {
  const { out } = (await bench.run("mark", given(RECORDS))).results;
  assert.deepEqual(
    out?.records.map(({ data }) => data),
    RECORDS,
  );
  assert.deepEqual(
    out?.records.map(({ isValid }) => isValid),
    [true, false, false],
  );
  assert.deepEqual(out?.records[0]?.errors, []);
  assert.deepEqual(
    out?.records[1]?.errors.map(({ field, code }) => [field, code]),
    [
      ["total", "minimum"],
      ["code", "pattern"],
      ["due", "too_old"],
      [null, "rule"],
    ],
  );
  assert.equal(out?.records[1]?.errors[2]?.message, "Due date is too old");
  assert.deepEqual(
    out?.records[2]?.errors.map(({ field, code }) => [field, code]),
    [["total", "required"]],
  );
  for (const error of out?.records.flatMap(({ errors }) => errors) ?? [])
    assert.deepEqual(Object.keys(error).sort(), ["code", "field", "message"]);
});

test("validate drops, or fails the run with counts only", async () => {
  assert.deepEqual(dataOf(await bench.run("drop", given(RECORDS))), [RECORDS[0]]);
  const failed = await bench.run("fail", given(RECORDS));
  assert.equal(failed.detail, "Node checked: 2 of 3 records are invalid, and on_invalid is fail.");
  assert.deepEqual(dataOf(await bench.run("fail", given([RECORDS[0]]))), [RECORDS[0]]);
});

test("output: one key a handle, the bare refKey for one handle or none; marks survive a map; errors add up", async () => {
  const run = await bench.run("handles", given(RECORDS));
  assert.deepEqual(Object.keys(run.results).sort(), [
    "one",
    "out",
    "parts.all",
    "parts.bad",
    "parts.good",
    "parts.late",
  ]);
  const codes = (key: string) => dataOf(run, key).map(({ code }) => code);
  assert.deepEqual(
    [codes("parts.good"), codes("parts.bad"), codes("parts.all"), codes("parts.late")],
    [["AB"], ["ab", "CD"], ["AB", "ab", "CD"], ["ab", "CD"]],
  );
  assert.deepEqual(codes("one"), ["AB", "ab", "CD"]);
  assert.equal(run.results["out"]?.totalRecords, 6);
  const [first, second] = run.results["parts.bad"]?.records ?? [];
  assert.deepEqual(first?.data.wrong, ["total", "code", "due", null, null]);
  assert.deepEqual(first?.errors.at(-1), { field: null, code: "rule", message: "Too many mistakes" });
  assert.deepEqual([second?.errors.length, second?.data.wrong], [1, "total"]);
});

test("an empty set gives every key, with no records", async () => {
  const run = await bench.run("handles", given([]));
  assert.deepEqual(
    Object.values(run.results).map(({ totalRecords, records }) => [totalRecords, records.length]),
    Array(6).fill([0, 0]),
  );
});

test("the results carry the run's key, its metadata as texts, and its timings", async () => {
  const run = await bench.run("mark", { given: [], po: { a: [1.0, true] }, ignored: 1 });
  assert.deepEqual(run.answer.executionMetadata, {
    runKey: run.status.run_key,
    metadata: { po: '{"a":[1,true]}' },
    timings: { executionBeganAt: run.status.started_at, executionCompletedAt: run.status.ended_at },
  });
  assert.equal(run.answer.dataDeliveryMethod, "direct");
});
