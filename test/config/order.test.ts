import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nearestName } from "#domain/config-nearest.ts";
import { executionOrder, findCycle } from "#domain/config-order.ts";

const blueprint = (...ids: string[]) => ({ nodes: ids.map((id) => ({ id })) });

test("nodes run by dependency, otherwise in the order written", () => {
  const dependencies = new Map([
    ["a", ["d"]],
    ["c", ["b"]],
  ]);
  assert.deepEqual(executionOrder(blueprint("a", "b", "c", "d"), dependencies), ["b", "c", "d", "a"]);
  assert.deepEqual(executionOrder(blueprint("c", "b", "a"), new Map()), ["c", "b", "a"]);
});

test("a cycle is named from its first node in the order written", () => {
  const dependencies = new Map([
    ["a", ["x"]],
    ["b", ["d"]],
    ["c", ["b"]],
    ["d", ["c"]],
  ]);
  assert.deepEqual(findCycle(["a", "b", "c", "d"], dependencies), ["b", "d", "c", "b"]);
  assert.deepEqual(findCycle(["a"], new Map([["a", ["a"]]])), ["a", "a"]);
  assert.throws(() => executionOrder(blueprint("b", "c", "d"), dependencies), /cycle: b -> d -> c -> b/);
});

test("every acyclic graph has an order in which sources come first; every other has a cycle", () => {
  const graph = fc.array(fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 3 }), {
    minLength: 1,
    maxLength: 8,
  });
  fc.assert(
    fc.property(graph, (edges) => {
      const ids = edges.map((_, index) => `n${index}`);
      const dependencies = new Map(
        edges.map((sources, index) => [`n${index}`, sources.map((source) => `n${source}`)]),
      );
      const cycle = findCycle(ids, dependencies);
      if (cycle !== undefined) {
        assert.equal(cycle[0], cycle.at(-1));
        for (const [index, id] of cycle.slice(0, -1).entries())
          assert.ok(dependencies.get(id)?.includes(cycle[index + 1] ?? ""));
        return;
      }
      const order = executionOrder({ nodes: ids.map((id) => ({ id })) }, dependencies);
      assert.deepEqual([...order].sort(), ids);
      for (const [id, sources] of dependencies) {
        for (const source of sources)
          if (ids.includes(source)) assert.ok(order.indexOf(source) < order.indexOf(id));
      }
    }),
  );
});

test("the nearest name forgives one slip, or two in a long name, and no more", () => {
  const names = ["fields", "hosts", "concurrency", "login"];
  assert.equal(nearestName("feilds", names), "fields");
  assert.equal(nearestName("Hosts", names), "hosts");
  assert.equal(nearestName("concurency", names), "concurrency");
  assert.equal(nearestName("logn", names), "login");
  assert.equal(nearestName("webhooks", names), undefined);
  assert.equal(nearestName("x".repeat(10_000), names), undefined);
});
