// A large root is given as JSON text: it is parsed beside the evaluation, and what is long comes back in parts.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { NotJson, type Outcome } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { readRoot } from "#domain/read-json.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { watchTurns } from "../event-loop.ts";

const TURN_MS_MAX = 100;

const evaluator = openEvaluator();
after(async () => await evaluator.close());
const bound = evaluator.bind({ run: { name: "a run" } });

const valuesOf = (outcomes: readonly Outcome[] | undefined): readonly (Json | undefined)[] =>
  (outcomes ?? []).map((outcome) => {
    assert.ok(outcome.ok, JSON.stringify(outcome));
    return outcome.value;
  });

const items = (count: number): Json[] =>
  Array.from({ length: count }, (_, at) => ({ at, text: `${at} `.repeat(40), list: [at], none: null }));

test("expressions give of a text what they give of its value", async () => {
  const sources = [
    "$",
    "$[0]",
    "at",
    "$[at > 5]",
    "$count($)",
    "$run.name",
    "$own",
    "nothing",
    "$[[1..3]].list",
  ];
  for (const root of [
    items(2_000),
    items(1),
    [],
    { items: items(3_000), at: 1 },
    "a text",
    [[1, [2]], "ä€😀"],
  ]) {
    const variables = { own: [1] };
    const [asText] = await bound.evaluateBatch(sources, [{ rootText: JSON.stringify(root), variables }]);
    const [asValue] = await bound.evaluateBatch(sources, [{ root, variables }]);
    assert.deepEqual(valuesOf(asText), valuesOf(asValue));
    const rootText = JSON.stringify(root, null, 2);
    assert.deepEqual(await bound.evaluate("$", { rootText }), await bound.evaluate("$", { root }));
  }
});

test("text that is not JSON is told, and can't be another row or a variable", async () => {
  for (const rootText of ["", "[1", '1},{"root":2', '1,"variables":{}', "undefined", "[1]]"]) {
    await assert.rejects(bound.evaluateBatch(["$", "at"], [{ rootText }]), NotJson);
    await assert.rejects(bound.evaluate("$", { rootText }), NotJson);
  }
  assert.equal(await bound.evaluate("$", { rootText: "1" }), 1);
});

test("an expression that fails on a text fails as on its value", async () => {
  const [outcomes] = await bound.evaluateBatch(["$ + 1", "$count($)"], [{ rootText: '["a"]' }]);
  assert.deepEqual(
    outcomes?.map(({ ok }) => ok),
    [false, true],
  );
});

test("neither a large answer nor a long list of records holds others up", async () => {
  const text = JSON.stringify(items(20_000));
  assert.ok(text.length > 4_000_000);
  const turns = watchTurns();
  const read = readRoot(text);
  assert.ok(read.ok);
  assert.equal(read.root.root, undefined);
  const value = await bound.evaluate("$[at >= 0]", read.root);
  const longest = turns.longestMs();
  assert.equal((value as Json[]).length, 20_000);
  assert.deepEqual((value as Json[])[19_999], items(20_000)[19_999]);
  assert.ok(longest < TURN_MS_MAX, `${longest} ms of CPU time in one turn of the event loop`);
});

test("what is small is parsed at once, and what is out of bounds nowhere", () => {
  assert.deepEqual(readRoot("\uFEFF[1]"), { ok: true, root: { root: [1] } });
  const deep = `${"[".repeat(600)}${"]".repeat(600)}`;
  for (const text of [deep, `${deep}${" ".repeat(70_000)}`, `[${"1,".repeat(1_000_001)}1]`])
    assert.deepEqual(
      [readRoot(text).ok, (readRoot(text) as { isTooMuch: boolean }).isTooMuch],
      [false, true],
    );
  const large = readRoot(`\uFEFF[${"1,".repeat(50_000)}1]`);
  assert.equal(large.ok && large.root.rootText?.[0], "[");
});
