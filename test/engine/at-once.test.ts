// A small run is executed without waiting (engine/execute-at-once.ts): nobody can tell it from one whose records stream.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openLocalStore } from "#blobs/local-store.ts";
import { readBlueprint } from "#domain/blueprint.ts";
import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { readTallies } from "#domain/node-tally.ts";
import { validRecord } from "#domain/record.ts";
import type { Value } from "#domain/value.ts";
import { executeNodes, type UnboundRun } from "#engine/execute-nodes.ts";
import { localJournal } from "#engine/local/local-journal.ts";
import { openTarget } from "#engine/login/target-session.ts";
import { openOutput } from "#engine/outputs/kept-output.ts";
import { Scratch } from "#engine/outputs/spool.ts";
import { planOnce } from "#engine/plan-run.ts";
import { openDoor } from "#engine/redaction/door.ts";
import { redactorOf } from "#engine/redaction/redact.ts";
import { RunFailure } from "#engine/run-ended.ts";
import { openRunSecrets } from "#engine/redaction/run-secrets.ts";
import { Tallies } from "#engine/tallies.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { systemClock } from "#lib/clock.ts";
import { openLog } from "#lib/log.ts";
import { systemRandom } from "#lib/random.ts";
import { openGate } from "#outbound/gate.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-at-once-"));
const blobs = openLocalStore(folder);
const expressions = openEvaluator();
const gate = openGate({ allow: [] });
after(async () => {
  await expressions.close();
  await gate.close();
  await rm(folder, { recursive: true });
});

/** Executes the nodes, and tells what became of them and how many streams were opened. `mayBeAtOnce`: false forbids it. */
async function execute(nodes: readonly JsonObject[], given: Value, mayBeAtOnce: boolean, secret?: string) {
  let streams = 0;
  const moves: string[] = [];
  const blueprint = readBlueprint({
    blueprint: "b",
    account: "a",
    edition: 2,
    nodes: [{ id: "given", type: "input", refKey: "given" }, ...nodes],
  });
  const plan = planOnce(blueprint);
  const secrets = openRunSecrets(secret === undefined ? [] : [secret]);
  const door = openDoor(secrets, null);
  const redact = redactorOf(secrets);
  await using scratch = new Scratch(folder, "run_1", 1);
  const run: UnboundRun = {
    services: {
      blobs,
      expressions,
      log: openLog({ level: "error", format: "json" }),
      clock: systemClock,
      random: systemRandom,
    },
    journal: {
      ...localJournal({ reviews: "stop", doubts: "stop" } as never),
      moveStep: async (step) => moves.push(step) > 0,
    },
    run: {
      id: "run_1",
      runKey: "k",
      accountId: "acc_1",
      name: null,
      metadata: Buffer.from("{}"),
      epoch: 1,
    } as UnboundRun["run"],
    lease: { runId: "run_1", owner: "w", epoch: 1 },
    plan: {
      ...plan,
      nodes: plan.nodes.map((planned) => ({
        ...planned,
        mayBeAtOnce: mayBeAtOnce && planned.mayBeAtOnce,
        type: {
          ...planned.type,
          run: async (...asked) => {
            streams++;
            return await planned.type.run(...asked);
          },
        },
      })),
    },
    signal: new AbortController().signal,
    scratch,
    redact,
    door,
    inputs: new Map([["given", given]]),
    targets: new Map(),
    openTarget: openTarget(gate, [], null),
    bindings: [],
    outputs: new Map(),
    results: new Map(),
    tallies: new Tallies(systemClock, 0),
    shown: { step: "running" },
  };
  try {
    await executeNodes(run);
    const results = [...run.results.values()].map(({ content, blob, ...result }) => ({
      ...result,
      content: content?.toString("utf8") ?? null,
      sha256: blob && Buffer.from(blob.sha256).toString("hex"),
    }));
    const tallies = readTallies([run.tallies.take()?.toString("utf8") ?? ""], [])
      .map(({ node, state, total, valid }) => ({ node, state, total, valid }))
      .toSorted((a, b) => (a.node < b.node ? -1 : 1));
    return { ended: { results, tallies, moves, changes: redact.changes }, streams };
  } catch (error) {
    if (!(error instanceof RunFailure)) throw error;
    return { ended: { kind: error.kind, message: error.message }, streams };
  } finally {
    for (const binding of run.bindings) binding.release();
  }
}

const text = (value: unknown): Value => ({ form: "text", text: JSON.stringify(value) });
const records = { id: "records", type: "parse", from: "given", format: "json" };
const out = (from: string): JsonObject => ({ id: "out", type: "output", refKey: "out", from });
const chain = (node: JsonObject): JsonObject[] => [records, { id: "x", from: "records", ...node }, out("x")];
const three = text([{ n: 1, word: "one" }, { n: 2 }, { n: 3, word: "three" }]);

/** Each with the number of streams that it needs: 0 for a run without any waiting. */
const CASES: readonly (readonly [
  name: string,
  nodes: readonly JsonObject[],
  given: Value,
  streams: number,
  secret?: string,
])[] = [
  ["a list", [records, out("records")], three, 0],
  ["one object", [records, out("records")], text({ n: 1 }), 0],
  ["no records", [records, out("records")], text([]), 0],
  ["null", [records, out("records")], text(null), 0],
  ["no value", [records, out("records")], { form: "absent" }, 0],
  ["a value that is JSON", [records, out("records")], { form: "json", json: [{ n: 1 }] }, 0],
  [
    "as many records as a batch",
    [records, out("records")],
    text(Array.from({ length: limits.recordBatchSizeMax }, () => ({}))),
    1,
  ],
  [
    "more records than a batch",
    [records, out("records")],
    text(Array.from({ length: limits.recordBatchSizeMax + 1 }, (_, n) => ({ n }))),
    2,
  ],
  ["text that is not JSON", [records, out("records")], { form: "text", text: "{" }, 0],
  ["an item that is no object", [records, out("records")], text([{ n: 1 }, 2]), 0],
  ["a long text", [records, out("records")], text([{ long: "x".repeat(70_000) }]), 2],
  [
    "a result too large for a row",
    [records, out("records")],
    text([{ long: "x".repeat(limits.rowContentBytesMax) }]),
    1,
  ],
  [
    "the secret of a run",
    [records, out("records")],
    text([{ word: "tell open-sesame" }, {}]),
    0,
    "open-sesame",
  ],
  ["map", chain({ type: "map", fields: { double: "n * 2", none: "nothing" } }), three, 0],
  ["map to objects", chain({ type: "map", expression: "word" }), three, 0],
  ["map that needs a thread", chain({ type: "map", fields: { name: "$pad(word, 9)" } }), three, 2],
  ["filter", chain({ type: "filter", where: "n > 1" }), three, 0],
  ["filter that keeps none", chain({ type: "filter", where: "n > 9" }), three, 0],
  ["filter that is neither true nor false", chain({ type: "filter", where: "n" }), three, 0],
  [
    "a node whose records are read twice",
    [records, { ...out("records"), id: "first", refKey: "first" }, out("records")],
    three,
    3,
  ],
  ["a node with a condition", [records, { ...out("records"), when: "false" }], three, 0],
  ["a milestone before it", [{ ...records, milestone: "reading" }, out("records")], three, 2],
  ["a time limit", [{ ...records, timeout: "1m" }, out("records")], three, 2],
  [
    "handles",
    [records, { id: "out", type: "output", refKey: "out", handles: { all: { from: "records" } } }],
    three,
    1,
  ],
  ["a node between that streams", chain({ type: "sort", by: [{ expression: "n" }] }), three, 3],
];

for (const [name, nodes, given, streams, secret] of CASES) {
  test(`at once: ${name}`, async () => {
    const small = await execute(nodes, given, true, secret);
    const streamed = await execute(nodes, given, false, secret);
    assert.deepEqual(small.ended, streamed.ended);
    assert.equal(small.streams, streams);
    assert.ok(
      streamed.streams > streams || "message" in streamed.ended || nodes.some(({ when }) => when),
      "nothing streams by itself",
    );
  });
}

test("the records that a row stores are the same without waiting and as a stream", async () => {
  const records = [{ n: 1, line: "one\ntwo" }, { word: "é, \u2028" }].map(validRecord);
  const lines = Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(""), "utf8");
  const row = {
    outputKind: "records",
    output: lines,
    blobKey: null,
    blobBytes: null,
    filename: null,
    contentType: null,
  } as const;
  const output = await openOutput(blobs, { ...row, recordsTotal: 2, recordsValid: 2 });
  assert.ok(output.kind === "records");
  assert.deepEqual(output.whole?.(), { kind: "records", records });
  assert.deepEqual((await Array.fromAsync(output.open())).flat(), records);
  const many = await openOutput(blobs, {
    ...row,
    recordsTotal: limits.recordBatchSizeMax + 1,
    recordsValid: 0,
  });
  assert.ok(many.kind === "records" && many.whole === undefined);
});
