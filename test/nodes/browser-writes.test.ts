// docs/browser.md#writes. What a browser does is in test/documents/browser-writes.pg.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runNode } from "./node-context.ts";

test("a write by steps has not ended before its end is stored: what keeps that from being stored fails the node", async () => {
  const calls: string[] = [];
  const unexpected = (): never => assert.fail("not in this test");
  const running = runNode(
    { type: "browser", effect: "write", steps: [{ goto: "http://127.0.0.1:9/" }] },
    {
      context: {
        browse: async <T>() => await Promise.resolve({ records: [{ n: 1 }] } as T),
        writes: {
          token: String,
          known: async () => new Map(),
          begin: unexpected,
          commit: unexpected,
          goOn: unexpected,
          send: unexpected,
          finish: async (ordinal, records) => {
            calls.push(`finish ${ordinal} ${JSON.stringify(records)}`);
            await Promise.reject(new Error("another worker has the run"));
          },
          refuse: unexpected,
          ruleOut: unexpected,
          doubt: unexpected,
          askOperator: unexpected,
        },
      },
    },
  );
  await assert.rejects(running, /another worker has the run/);
  assert.deepEqual(calls, ['finish 0 [{"n":1}]']);
});
