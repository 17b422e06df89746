// A request without expressions is the same for every run of its version (nodes/http/http-request.ts): it is prepared once.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { JsonObject } from "#domain/json.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import type { NodeContext } from "#nodes/define-node.ts";
import { prepareRequest, type PreparedRequest } from "#nodes/http/http-request.ts";
import { blueprintNode } from "./node-context.ts";

const evaluator = openEvaluator();
after(() => evaluator.close());

const prepare = async (
  request: Parameters<typeof prepareRequest>[1],
  variables: JsonObject,
): Promise<PreparedRequest> => {
  const expressions = evaluator.bind(variables);
  try {
    const node = blueprintNode({ type: "http", request: { url: "/" } });
    return await prepareRequest({ node, expressions } as Partial<NodeContext> as NodeContext, request);
  } finally {
    expressions.release();
  }
};

test("a request without expressions is prepared once", async () => {
  const request = { method: "POST", url: "/a", query: { b: 1 }, json: { c: [2] } } as const;
  const first = await prepare(request, {});
  assert.deepEqual(first, {
    method: "POST",
    url: "/a",
    query: [["b", "1"]],
    headers: [["content-type", "application/json"]],
    body: '{"c":[2]}',
  });
  assert.equal(await prepare(request, {}), first);
});

test("each run has its own values, wherever they stand", async () => {
  const one = "{{ $inputs.n }}";
  for (const request of [
    { url: `/a/${one}` },
    { url: one },
    { url: "/a", query: { b: one } },
    { url: "/a", headers: { b: one } },
    { url: "/a", json: { b: [one] } },
    { url: "/a", form: { b: one } },
    { url: "/a", text: one },
    { url: "/a", multipart: { b: one } },
  ]) {
    const [first, second] = [
      await prepare(request, { inputs: { n: "1" } }),
      await prepare(request, { inputs: { n: "2" } }),
    ];
    assert.notDeepEqual(first, second, JSON.stringify(request));
  }
});

test("a form with parts has a boundary of its own in each run", async () => {
  const request = { url: "/a", multipart: { b: "c" } };
  assert.notEqual(await prepare(request, {}), await prepare(request, {}));
});
