import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "#domain/json.ts";
import type { ReviewQuestion } from "#domain/review.ts";
import { validRecord } from "#domain/record.ts";
import { blueprint } from "../documents/bench.ts";
import { check as problemsOf } from "../config/problems-of.ts";
import { batches, check, recordFlow, recordsOf, runNode } from "./node-context.ts";

/** What a node asks, and what it gives when a person leaves one record. */
async function asked(config: JsonObject): Promise<ReviewQuestion> {
  const questions: ReviewQuestion[] = [];
  const { flow } = await runNode(
    { type: "review", from: "x", ...config },
    {
      from: [recordFlow([{ n: 1 }, { n: 2 }])],
      variables: { metadata: { order: "PO-7", long: "x".repeat(300), none: null } },
      context: {
        review: async (records, ask) => {
          questions.push(await ask());
          assert.equal((await Array.fromAsync(records)).flat().length, 2);
          return batches([validRecord({ n: 2 })]);
        },
      },
    },
  );
  assert.deepEqual(await recordsOf(flow), [validRecord({ n: 2 })]);
  const [question] = questions;
  assert.ok(question);
  return question;
}

test("review: the question has its defaults, its templates rendered and its texts cut", async () => {
  assert.deepEqual(await asked({}), {
    title: "n",
    instructions: null,
    editable: false,
    timeoutMs: null,
    onTimeout: "fail",
  });
  const full = { title: "Of {{ $metadata.order }}", instructions: "Look", editable: true };
  assert.deepEqual(await asked({ ...full, timeout: "3d", on_timeout: "approve" }), {
    title: "Of PO-7",
    instructions: "Look",
    editable: true,
    timeoutMs: 3 * 86_400_000,
    onTimeout: "approve",
  });
  assert.equal((await asked({ name: "The gate" })).title, "The gate");
  assert.equal((await asked({ title: "{{ $metadata.long }}" })).title, `${"x".repeat(254)}…`);
  await assert.rejects(asked({ title: "{{ $metadata.none }}" }), {
    message: "title evaluates to null; it must be a string.",
  });
});

test("review: `on_timeout` wants a `timeout`", () => {
  assert.match(
    check({ type: "review", on_timeout: "fail" })[0]?.message ?? "",
    /has no effect without `timeout`/,
  );
  assert.deepEqual(check({ type: "review", on_timeout: "fail", timeout: "1h" }), []);
});

test("review: `apply` refuses what does not fit together, by name and place", () => {
  const nodes = `- { id: given, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: given, format: json }
- { id: gate, type: review, from: given, tilte: T, editable: maybe, on_timeout: approve, credential: it }
- { id: late, type: review, from: lines, timeout: 400d, title: "{{ $counts.total }}", on_timeout: perhaps }
- { id: out, type: output, refKey: out, from: gate }`;
  const texts = ["account: acme", blueprint("wrong", nodes)];
  const { problems } = problemsOf(texts.map((text, index) => ({ file: `${index}.yaml`, text })));
  assert.deepEqual(
    problems.map((line) => line.replace(/^\S+ /, "")),
    [
      "nodes[2].from the node `given` outputs a value, and `review` reads records; put a node of type `parse` between them",
      "nodes[2].tilte unknown key `tilte`; did you mean `title`?",
      "nodes[2].editable must be true or false, not text",
      "nodes[2].on_timeout `on_timeout` has no effect without `timeout`; add one, for example `timeout: 3d`",
      "nodes[2].credential a node of type `review` uses no credential; remove it",
      "nodes[3].timeout must be at most 365d",
      "nodes[3].title `$counts` exists only in `when`",
      "nodes[3].on_timeout must be one of `fail`, `approve`",
    ],
  );
});
