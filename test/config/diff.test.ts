import assert from "node:assert/strict";
import { test } from "node:test";
import { diffDocuments } from "#domain/config-diff.ts";

test("documents are the same whatever the order of their keys", () => {
  assert.deepEqual(diffDocuments({ a: [1, { b: 2 }], c: null }, { c: null, a: [1, { b: 2 }] }), []);
});

test("each place that differs is named, from the outside in", () => {
  assert.deepEqual(
    diffDocuments(
      { name: "A", timeout: "10m", hosts: ["https://a.example"], x: { y: [1, 2] } },
      { name: "B", hosts: ["https://a.example", "https://b.example"], x: { y: [1] }, retired: true },
    ),
    [
      { path: "name", before: "A", after: "B" },
      { path: "hosts[1]", after: "https://b.example" },
      { path: "x.y[1]", before: 2 },
      { path: "retired", after: true },
      { path: "timeout", before: "10m" },
    ],
  );
});

test("nodes go by their id, so that a new one does not move the others; a change of order is said", () => {
  const node = (id: string, more = {}) => ({ id, type: "map", ...more });
  assert.deepEqual(
    diffDocuments(
      { nodes: [node("a"), node("b", { fields: { x: "1" } }), node("c")] },
      { nodes: [node("new"), node("b", { fields: { x: "2" } }), node("a")] },
    ),
    [
      { path: "nodes (order)", before: "a, b", after: "b, a" },
      { path: "nodes.new", after: node("new") },
      { path: "nodes.b.fields.x", before: "1", after: "2" },
      { path: "nodes.c", before: node("c") },
    ],
  );
});

test("a value that takes another form is one difference", () => {
  assert.deepEqual(diffDocuments({ from: "a" }, { from: ["a", "b"] }), [
    { path: "from", before: "a", after: ["a", "b"] },
  ]);
});
