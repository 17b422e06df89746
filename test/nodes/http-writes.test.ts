import assert from "node:assert/strict";
import { test } from "node:test";
import { recordFlow, runNode, recordsOf } from "./node-context.ts";

test("a write whose run is stopped while its intent is committed is not sent, and is known not to have happened", async () => {
  const stop = new AbortController();
  const calls: string[] = [];
  const said =
    (what: string) =>
    async (ordinal: number): Promise<void> =>
      void calls.push(`${what} ${ordinal}`);
  const unexpected = (): never => assert.fail("not in this test");
  const { flow } = await runNode(
    { type: "http", for_each: "a", request: { method: "POST", url: "http://127.0.0.1:9/" } },
    {
      from: [recordFlow([{ n: 1 }, { n: 2 }])],
      signal: stop.signal,
      context: {
        writes: {
          token: String,
          known: async () => new Map(),
          begin: async (ordinal) => {
            await said("begin")(ordinal);
            stop.abort(new Error("stopped"));
          },
          commit: unexpected,
          goOn: unexpected,
          send: unexpected,
          finish: unexpected,
          refuse: unexpected,
          ruleOut: said("rule out"),
          doubt: unexpected,
          askOperator: unexpected,
        },
      },
    },
  );
  await assert.rejects(recordsOf(flow), /stopped/);
  assert.deepEqual(calls, ["begin 0", "rule out 0"]);
});
