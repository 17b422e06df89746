import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Json, JsonObject } from "#domain/json.ts";
import { validRecord, type DataRecord } from "#domain/record.ts";
import { Scratch } from "#engine/outputs/spool.ts";
import type { Flow, NodeContext } from "#nodes/define-node.ts";
import { sortKeyed } from "#nodes/records/sort-keyed.ts";
import { compareJson, digestJson } from "#nodes/records/compare-json.ts";
import { batches, check, dataOf, recordFlow, recordsOf, runNode, spillTo } from "./node-context.ts";
import { testInAll } from "../tiers.ts";

const run = async (document: JsonObject, ...from: readonly Flow[]) =>
  (await runNode({ from: "left", ...document }, { from })).flow;
const records = (list: readonly DataRecord[]): Flow => ({ kind: "records", batches: batches(list) });
const messages = (document: JsonObject) =>
  check({ from: "left", ...document }).map(({ path, message }) => `${path.join(".")}: ${message}`);
/** The same numbers at each run. */
const scattered = (count: number, below: number): readonly number[] =>
  Array.from({ length: count }, (_, index) => (index * 7_919 + 13 * (index % 97)) % below);

const ORDERED: readonly Json[] = [
  null,
  false,
  true,
  -3,
  0,
  2,
  10,
  "",
  "10",
  "2",
  "B",
  "a",
  "a\u0301",
  "b",
  [],
  [1],
  [1, null],
  [2],
  ["1"],
  {},
  { a: 1 },
  { a: 1, b: 0 },
  { a: 2 },
  { b: 0 },
];

test("sort: a total order over all kinds of JSON, in both directions; nothing comes before null", async () => {
  for (const [place, left] of ORDERED.entries()) {
    for (const [other, right] of ORDERED.entries()) {
      assert.equal(
        Math.sign(compareJson(left, right)),
        Math.sign(place - other),
        JSON.stringify([left, right]),
      );
      assert.equal(digestJson(left) === digestJson(right), place === other);
    }
  }
  assert.equal(digestJson({ a: 1, b: { d: 1, c: 2 } }), digestJson({ b: { c: 2, d: 1 }, a: 1 }));
  const mixed = [...ORDERED.map((v) => ({ v })), {}].toSorted((a, b) =>
    digestJson(a).localeCompare(digestJson(b)),
  );
  const ascending = [{}, ...ORDERED.map((v) => ({ v }))];
  assert.deepEqual(await dataOf(await run({ type: "sort", by: "v" }, recordFlow(mixed))), ascending);
  const by = { expression: "v", order: "descending" };
  assert.deepEqual(await dataOf(await run({ type: "sort", by }, recordFlow(mixed))), ascending.toReversed());
});

test("sort: several keys, equal records keep their order, errors and isValid stay", async () => {
  const bad: DataRecord = {
    data: { a: 1, n: 2 },
    errors: [{ field: "a", code: "x", message: "m" }],
    isValid: false,
  };
  const list = [validRecord({ a: 2, n: 0 }), validRecord({ a: 1, n: 1 }), bad, validRecord({ a: 2, n: 3 })];
  const flow = await run({ type: "sort", by: [{ expression: "a", order: "ascending" }] }, records(list));
  assert.deepEqual(await recordsOf(flow), [list[1], bad, list[0], list[3]]);
  const both = await run(
    {
      type: "sort",
      by: [
        { expression: "a", order: "descending" },
        { expression: "$index", order: "descending" },
      ],
    },
    records(list),
  );
  assert.deepEqual(
    (await dataOf(both)).map((data) => (data as { n: number }).n),
    [3, 0, 2, 1],
  );
});

test("sort: what is spilled and merged in several passes is as sorted and as stable as what is not", async () => {
  const entries = scattered(1_000, 50).map((k, n) => ({ key: [k], record: validRecord({ k, n }) }));
  await using files = new Scratch(tmpdir(), `run_sort${process.pid}`, 1);
  const given = async function* () {
    for (let start = 0; start < entries.length; start += 3) yield entries.slice(start, start + 3);
  };
  // 167 chunks, by three: five passes.
  const bounds = { recordsMax: 6, charactersMax: 1_000_000, mergedMax: 3 };
  const sorted = await Array.fromAsync(sortKeyed(given(), compareJson, spillTo(files), bounds));
  assert.deepEqual(
    sorted.flat(),
    entries.toSorted((a, b) => Number(a.key[0]) - Number(b.key[0])),
  );
});

test("sort, dedupe and join: a key that can't be evaluated fails the node with record and key, without the data", async () => {
  const bad = () => recordFlow([{ n: "1" }, { n: "secret-4711" }]);
  const fails = async (document: JsonObject, at: string) =>
    await assert.rejects(
      async () => await dataOf(await run(document, bad(), recordFlow([{ n: "1" }]))),
      (error: Error) => {
        assert.equal(error.name, "NodeFailure");
        assert(error.message.startsWith(`Record 1: ${at}: expression \`$number(n)\``), error.message);
        assert(!error.message.includes("4711"));
        return true;
      },
    );
  await fails({ type: "sort", by: { expression: "$number(n)" } }, "by");
  await fails({ type: "sort", by: ["n", "$number(n)"] }, "by[1]");
  await fails({ type: "dedupe", by: ["$number(n)"] }, "by[0]");
  await fails({ type: "join", with: "right", on: { left: "$number(n)", right: "n" } }, "on.left");
});

test('dedupe: keeps the first in order; 1, "1", null and nothing are different', async () => {
  const list = [
    { a: 1, n: 0 },
    { n: 1 },
    { a: "1", n: 2 },
    { a: null, n: 3 },
    { a: 1.0, n: 4 },
    { n: 5 },
    { a: null, n: 6 },
  ];
  const kept = (await dataOf(await run({ type: "dedupe", by: "a" }, recordFlow(list, 2)))) as { n: number }[];
  assert.deepEqual(
    kept.map(({ n }) => n),
    [0, 1, 2, 3],
  );
  const both = await run(
    { type: "dedupe", by: ["$lowercase(a)", "b"] },
    recordFlow([
      { a: "X", b: { p: 1, q: 2 } },
      { a: "x", b: { q: 2, p: 1 } },
      { a: "x", b: 1 },
    ]),
  );
  assert.equal((await dataOf(both)).length, 2);
});

test("dedupe: more keys than are remembered: still the first of each, in order", async () => {
  const keys = scattered(130_000, 90_001);
  const flow = await run({ type: "dedupe", by: "k" }, recordFlow(keys.map((k, n) => ({ k, n }))));
  const seen = new Set<number>();
  const expected = keys.flatMap((k, n) => (seen.has(k) ? [] : (seen.add(k), [{ k, n }])));
  assert(expected.length > 60_000 && expected.length < 130_000, String(expected.length));
  assert.deepEqual(await dataOf(flow), expected);
});

const join = (more: JsonObject) => ({ type: "join", with: "right", on: "id", ...more });

test("join: inner and left, several matches, the left's field of two with one name, null and nothing match nothing", async () => {
  const left = () =>
    recordFlow([{ id: 2, name: "two" }, { id: null }, { id: 1, name: "one" }, { name: "none" }, { id: "1" }]);
  const right = () =>
    recordFlow([{ id: 1, name: "x", more: 1 }, { id: null, more: 2 }, { more: 3 }, { id: 1, more: 4 }]);
  assert.deepEqual(await dataOf(await run(join({}), left(), right())), [
    { id: 1, name: "one", more: 1 },
    { id: 1, name: "one", more: 4 },
  ]);
  assert.deepEqual(await dataOf(await run(join({ kind: "left" }), left(), right())), [
    { id: 2, name: "two" },
    { id: null },
    { id: 1, name: "one", more: 1 },
    { id: 1, name: "one", more: 4 },
    { name: "none" },
    { id: "1" },
  ]);
});

test("join: an expression per side, several of them, and the errors of both sides", async () => {
  const error = (field: string) => ({ field, code: "c", message: "m" });
  const left = records([
    { data: { a: 1, b: "x" }, errors: [error("a")], isValid: false },
    validRecord({ a: 1, b: "y" }),
  ]);
  const right = records([
    validRecord({ c: 1, b: "x" }),
    { data: { c: 1, b: "y", d: 1 }, errors: [error("d")], isValid: false },
  ]);
  const flow = await run({ type: "join", with: "right", on: [{ left: "a", right: "c" }, "b"] }, left, right);
  assert.deepEqual(await recordsOf(flow), [
    { data: { a: 1, b: "x", c: 1 }, errors: [error("a")], isValid: false },
    { data: { a: 1, b: "y", c: 1, d: 1 }, errors: [error("d")], isValid: false },
  ]);
});

test("join: a right side that doesn't fit gives the same, in the same order, also with one key that has most of it", async () => {
  const rightKeys = [...scattered(30_000, 40_000), ...Array.from({ length: 21_000 }, () => -1)];
  const right = rightKeys.map((id, r) => ({ id, r }));
  const left = [...scattered(3_000, 50_000), -1, -1].map((id, l) => ({ id, l }));
  const byId = Map.groupBy(right, ({ id }) => id);
  const expected = left.flatMap((record) =>
    (byId.get(record.id) ?? [{}]).map((match) => [record.l, (match as { r?: number }).r ?? null]),
  );
  const flow = await run(join({ kind: "left" }), recordFlow(left), recordFlow(right));
  const pairs = ((await dataOf(flow)) as { l: number; r?: number }[]).map(({ l, r }) => [l, r ?? null]);
  assert(expected.length > 44_000, String(expected.length));
  assert.deepEqual(pairs, expected);
});

test("what skipped sources give is empty: a left join keeps its records, an inner one none", async () => {
  const left = () => recordFlow([{ id: 1 }]);
  assert.deepEqual(await dataOf(await run(join({}), left(), recordFlow([]))), []);
  assert.deepEqual(await dataOf(await run(join({ kind: "left" }), left(), recordFlow([]))), [{ id: 1 }]);
  assert.deepEqual(await dataOf(await run({ type: "sort", by: "id" }, recordFlow([]))), []);
  assert.deepEqual(await dataOf(await run({ type: "dedupe", by: "id" }, recordFlow([]))), []);
});

test("join: `from` may be a list, and its sources are read one after the other", async () => {
  const { flow } = await runNode(
    { type: "join", from: ["a", "b"], with: "c", on: "id" },
    {
      from: [
        recordFlow([{ id: 1 }]),
        recordFlow([{ id: 2 }]),
        recordFlow([
          { id: 2, x: 1 },
          { id: 1, x: 2 },
        ]),
      ],
    },
  );
  assert.deepEqual(await dataOf(flow), [
    { id: 1, x: 2 },
    { id: 2, x: 1 },
  ]);
});

test("check: what is missing, what is unknown, and a join with what `from` reads already", () => {
  assert.match(messages({ type: "sort" })[0] ?? "", /by/);
  assert.match(messages({ type: "sort", by: [] })[0] ?? "", /schema/);
  assert.match(messages({ type: "sort", by: { expression: "a", order: "up" } })[0] ?? "", /schema/);
  assert.match(messages({ type: "dedupe", by: { expression: "a" } })[0] ?? "", /schema/);
  assert.match(messages(join({ kind: "outer" }))[0] ?? "", /kind: schema/);
  assert.match(messages(join({ on: { left: "a" } }))[0] ?? "", /schema/);
  assert.deepEqual(messages({ type: "join", with: "left", on: "id" }), [
    "with: `with` names `left`, which `from` already reads; to join records with themselves, put a `map` in between",
  ]);
  assert.deepEqual(messages(join({})), []);
});

test("who stops reading early closes every reader of what was spilled", async () => {
  const list = Array.from({ length: 45_000 }, (_, n) => ({ n: 45_000 - n }));
  let open = 0;
  let opened = 0;
  const spill: NodeContext["spill"] = async (spilled) => {
    const kept = await Array.fromAsync(spilled);
    return async function* () {
      open += 1;
      opened += 1;
      try {
        yield* kept;
      } finally {
        open -= 1;
      }
    };
  };
  const { flow } = await runNode(
    { type: "sort", from: "left", by: "n" },
    { from: [recordFlow(list)], context: { spill } },
  );
  assert(flow?.kind === "records");
  for await (const batch of flow.batches) {
    assert.deepEqual(batch[0]?.data, { n: 1 });
    break;
  }
  assert.deepEqual({ open, opened }, { open: 0, opened: 5 });
});

// Measured: a heap of this size dies of the records alone (20,000 of 8 kB) when they are held.
testInAll(
  "dedupe and join of more than a node keeps in memory",
  "sort, dedupe and join of 160 MB of records in a heap of 128 MB",
  { timeout: 300_000 },
  async () => {
    const child = fileURLToPath(new URL("order-nodes-child.ts", import.meta.url));
    const options = ["--disable-warning=ExperimentalWarning", "--max-old-space-size=128"];
    const { stdout } = await promisify(execFile)(process.execPath, [...options, child, "20000"]);
    const { residentMiB, ...seen } = JSON.parse(stdout) as { residentMiB: number };
    assert.deepEqual(seen, { records: 20_000, isOrdered: true, last: 0 });
    assert(residentMiB < 600, `${residentMiB} MiB resident`);
  },
);
