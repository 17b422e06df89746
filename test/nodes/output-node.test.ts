import { test } from "node:test";
import assert from "node:assert/strict";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { validRecord } from "#domain/record.ts";
import { edgesOf } from "#nodes/define-node.ts";
import { resultKeysOf } from "#nodes/types/output.ts";
import { splitRecords } from "#nodes/records/split-records.ts";
import { blueprintNode, check, recordFlow, runNode } from "./node-context.ts";

test("output: `from` writes the bare refKey", async () => {
  const { seen, flow } = await runNode(
    { type: "output", refKey: "r", from: ["a", "b"] },
    { from: [recordFlow([{ n: 1 }]), recordFlow([{ n: 2 }])] },
  );
  assert.equal(flow, null);
  assert.deepEqual(
    [...seen.results].map(([handle, records]) => [handle, records.map((record) => record.data)]),
    [[null, [{ n: 1 }, { n: 2 }]]],
  );
});

test("output: an empty set still writes its key", async () => {
  const handles = { a: { from: "x", where: "n > 0" }, b: { from: "x" } };
  const { seen } = await runNode({ type: "output", refKey: "r", handles }, { from: [recordFlow([])] });
  assert.deepEqual(
    [...seen.results],
    [
      ["a", []],
      ["b", []],
    ],
  );
});

test("output: handles that share a source are one pass over it; others have their own", async () => {
  let passes = 0;
  const once: RecordBatches = {
    async *[Symbol.asyncIterator]() {
      passes += 1;
      yield [validRecord({ n: 1 }), validRecord({ n: 2 })];
      yield [validRecord({ n: 3 })];
    },
  };
  const handles = {
    odd: { from: "x", where: "n % 2 = 1" },
    other: { from: "y" },
    all: { from: "x" },
    none: { from: "x", where: "n > 9" },
  };
  const document = { type: "output", refKey: "r", handles };
  assert.deepEqual(edgesOf(blueprintNode(document)), ["x", "y"]);
  const { seen } = await runNode(document, {
    from: [{ kind: "records", batches: once }, recordFlow([{ n: 7 }])],
  });
  assert.equal(passes, 1);
  const data = Object.fromEntries(
    [...seen.results].map(([handle, records]) => [handle, records.map((record) => record.data["n"])]),
  );
  assert.deepEqual(data, { odd: [1, 3], all: [1, 2, 3], none: [], other: [7] });
});

test("Spec, Run results: one handle uses the bare refKey, several `<ref>.<handle>`", async () => {
  const one = { type: "output", refKey: "r", handles: { only: { from: "x", where: "n = 2" } } };
  const { seen } = await runNode(one, { from: [recordFlow([{ n: 1 }, { n: 2 }])] });
  assert.deepEqual([...seen.results.keys()], [null]);
  assert.deepEqual(resultKeysOf(blueprintNode(one)), [{ handle: null, key: "r" }]);
  assert.deepEqual(resultKeysOf(blueprintNode({ type: "output", refKey: "r", from: "x" })), [
    { handle: null, key: "r" },
  ]);
  const two = blueprintNode({ type: "output", refKey: "r", handles: { a: { from: "x" }, b: { from: "y" } } });
  assert.deepEqual(resultKeysOf(two), [
    { handle: "a", key: "r.a" },
    { handle: "b", key: "r.b" },
  ]);
});

test("output: a writer that fails ends the others, and its error is the node's", async () => {
  const handles = { a: { from: "x" }, b: { from: "x" } };
  const writeResult = async (handle: string | null, output: RecordBatches) => {
    for await (const batch of output) if (handle === "b" && batch.length > 0) throw new Error("disk full");
  };
  await assert.rejects(
    runNode(
      { type: "output", refKey: "r", handles },
      { from: [recordFlow([{ n: 1 }, { n: 2 }], 1)], context: { writeResult } },
    ),
    /disk full/,
  );
});

test("output: a source that fails in the middle fails every handle", async () => {
  const source = async function* (): RecordBatches {
    yield [validRecord({ n: 1 })];
    throw new Error("page 2 is gone");
  };
  const handles = { a: { from: "x" }, b: { from: "x", where: "n = 1" } };
  await assert.rejects(
    runNode({ type: "output", refKey: "r", handles }, { from: [{ kind: "records", batches: source() }] }),
    /page 2 is gone/,
  );
});

test("a split goes at the pace of the slowest reader, and a reader that stops early holds nobody up", async () => {
  const part = (n: number): readonly DataRecord[] => [validRecord({ n })];
  let made = 0;
  const source = async function* () {
    for (made = 1; made <= 6; made += 1) yield [part(made), part(made), part(made)];
  };
  let fast = 0;
  let slow = 0;
  await splitRecords(source(), [
    async (output) => {
      for await (const _ of output) {
        fast += 1;
        assert(fast - slow <= 1);
      }
    },
    async (output) => {
      for await (const _ of output) {
        await new Promise((resolve) => setTimeout(resolve, 2));
        slow += 1;
      }
    },
    async (output) => {
      for await (const _ of output) break;
    },
  ]);
  assert.deepEqual([fast, slow], [6, 6]);
});

test("output: check wants `from` or handles, and keys without dots", () => {
  const messages = (document: object) =>
    check({ type: "output", ...document })
      .map(({ message }) => message)
      .join();
  assert.match(messages({ refKey: "r" }), /either `from`, or `handles`/);
  assert.match(
    messages({ refKey: "r", from: "x", handles: { a: { from: "x" } } }),
    /either `from`, or `handles`/,
  );
  assert.match(messages({ refKey: "a.b", from: "x" }), /schema/);
  assert.match(messages({ refKey: "r", handles: { "a.b": { from: "x" } } }), /no dot/);
  assert.match(messages({ refKey: "r", handles: {} }), /schema/);
  assert.equal(messages({ refKey: "r", from: "x" }), "");
});
