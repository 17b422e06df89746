// All nodes of a run, as its page shows them: those with journal entries, those without, and those that it never reached.
import assert from "node:assert/strict";
import { test } from "node:test";
import { listRunNodes, type RecordedRun, type RecordedStep } from "../../ui/pages/run-nodes.ts";

const node = (id: string, more: object = {}) => ({
  id,
  type: "map",
  name: null,
  ref_key: null,
  gives: "records" as const,
  when: null,
  credential: null,
  milestone: null,
  steps: [],
  ...more,
});
const flow = (from: string, to: string) => ({ from, to, kind: "flow" as const });
// In another order than that of their dependencies.
const GRAPH = {
  nodes: [node("out", { gives: "results" }), node("joined"), node("a"), node("b"), node("gate")],
  edges: [flow("a", "joined"), flow("b", "joined"), flow("joined", "gate"), flow("gate", "out")],
};
const tally = (id: string, records: number | null, status: "done" | "skipped" | "stopped" = "done") => ({
  node: id,
  status,
  started_at: "2026-01-01T00:00:01.000Z",
  ended_at: "2026-01-01T00:00:02.000Z",
  records_total: records,
  records_valid: records === null ? null : records - 1,
});
const RUN: RecordedRun<RecordedStep> = {
  status: "completed",
  ended_at: "2026-01-01T00:01:00.000Z",
  purged_at: null,
  started_at: "2026-01-01T00:00:00.500Z",
  parked_at: null,
  failed_node: null,
  steps: [],
  reviews: [],
  nodes: [tally("a", 3), tally("b", 4, "stopped"), tally("joined", 7), tally("out", 7)],
};
const states = (run: RecordedRun<RecordedStep>): Record<string, string> =>
  Object.fromEntries(listRunNodes(run, GRAPH).map(({ id, state }) => [id, state]));

test("nodes are in the order of their dependencies, with the records that they read and gave", () => {
  const nodes = listRunNodes(RUN, GRAPH);
  assert.deepEqual(
    nodes.map(({ id, recordsIn, records, errors }) => [id, recordsIn, records, errors]),
    [
      ["a", null, 3, 1],
      ["b", null, 4, 1],
      ["joined", 7, 7, 1],
      ["gate", 7, null, null],
      ["out", null, 7, 1],
    ],
  );
});

test("in a completed run, what its readers did not need is done, and what left no trace is not recorded", () => {
  assert.deepEqual(states(RUN), { a: "done", b: "done", joined: "done", gate: "unknown", out: "done" });
});

test("in a failed run the failed node is named, and those after it were not reached", () => {
  const failed = {
    ...RUN,
    status: "failed",
    failed_node: "joined",
    nodes: [tally("a", 3), tally("joined", 0, "stopped")],
  } as const;
  assert.deepEqual(states(failed), {
    a: "done",
    b: "unreached",
    joined: "failed",
    gate: "unreached",
    out: "unreached",
  });
});

test("while a run goes on, a node waits for a reviewer, and those after it have not started", () => {
  const step = { ...tally("gate", null), status: "started" as const, ended_at: null };
  const review = { node: "gate", status: "open" };
  const open = {
    ...RUN,
    status: "running",
    ended_at: null,
    steps: [step],
    reviews: [review],
    nodes: RUN.nodes.slice(0, 3),
  } as const;
  const { gate, out } = states({ ...open, reviews: [review], steps: [step] });
  assert.deepEqual([gate, out], ["waiting", "pending"]);
  assert.equal(states({ ...open, reviews: [], steps: [step] })["gate"], "started");
});

test("a browser that only reads is running before it is recorded, with what it reads, unless the run waits", () => {
  const graph = {
    nodes: [node("data", { type: "input" }), node("page", { type: "browser" }), node("out")],
    edges: [flow("data", "page"), flow("page", "out")],
  };
  const run = { ...RUN, status: "running", ended_at: null, nodes: [] };
  const of = (each: RecordedRun<RecordedStep>) => listRunNodes(each, graph).map(({ state }) => state);
  assert.deepEqual(of(run), ["started", "started", "pending"]);
  const [, page] = listRunNodes(run, graph);
  assert.equal(page?.fromMs, Date.parse("2026-01-01T00:00:00.500Z"));
  const pending = ["pending", "pending", "pending"];
  assert.deepEqual(of({ ...run, parked_at: "2026-01-01T00:00:01.000Z" }), pending);
  assert.deepEqual(of({ ...run, started_at: null }), pending);
  const step = { ...tally("out", null), status: "started" as const, ended_at: null };
  assert.deepEqual(of({ ...run, steps: [step] }), ["pending", "pending", "started"]);
});

test("the steps of a login come before the nodes, which need it", () => {
  const login = { ...tally("login step 2 (POST /login)", null), status: "failed" as const };
  const ids = listRunNodes({ ...RUN, steps: [login] }, GRAPH).map(({ id }) => id);
  assert.equal(ids[0], "login step 2 (POST /login)");
});

test("a skipped node is skipped, and steps that are in no graph are listed", () => {
  const skipped = { ...RUN, nodes: [tally("a", null, "skipped")] };
  assert.equal(states(skipped)["a"], "skipped");
  assert.deepEqual(
    listRunNodes(RUN).map(({ id }) => id),
    [],
  );
});
