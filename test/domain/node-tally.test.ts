// The counts and times of nodes without journal entries, as the rows of a run's journal store them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readTallies, tallyLine, type NodeTally } from "#domain/node-tally.ts";

const tally = (node: string, fromMs: number, state: NodeTally["state"] = "done"): NodeTally => ({
  node,
  state,
  fromMs,
  toMs: fromMs + 5,
  total: 2,
  valid: 1,
});
const lines = (...tallies: readonly NodeTally[]): string => tallies.map(tallyLine).join("");

test("tallies are read as they were written, in the order in which the nodes began", () => {
  const [first, second] = [tally("a", 10), { ...tally("b", 20, "skipped"), total: null, valid: null }];
  assert.deepEqual(readTallies([lines(second), "", lines(first)]), [first, second]);
});

test("of a node that was executed again, the first complete tally counts, in any order of the rows", () => {
  const [cut, first, again] = [tally("a", 10, "stopped"), tally("a", 20), tally("a", 900)];
  for (const texts of [
    [lines(cut, first), lines(again)],
    [lines(again), lines(cut, first)],
    [lines(first), lines(again, cut)],
  ])
    assert.deepEqual(readTallies(texts), [first]);
  assert.deepEqual(readTallies([lines(cut), lines(tally("a", 30, "stopped"))]).length, 1);
});

test("nodes that began in the same millisecond are in the order of the plan, in any order of the rows", () => {
  const [first, second, third] = [tally("rows", 10), tally("checked", 10), tally("all", 11)];
  for (const texts of [
    [lines(first, second, third)],
    [lines(third, second), lines(first)],
    [lines(second, third, first)],
  ])
    assert.deepEqual(readTallies(texts, ["all", "rows", "checked"]), [first, second, third]);
});
