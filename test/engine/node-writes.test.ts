// docs/browser.md#writes: what was not done needs nobody's decision. docs/blueprints.md#writes: people see an uncertain write without secrets.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { openTarget } from "#engine/login/target-session.ts";
import { nodeWrites } from "#engine/node-writes.ts";
import { makeRedactor } from "#engine/redaction/redact.ts";
import type { RunContext } from "#engine/run-context.ts";
import { RunStopped } from "#engine/run-ended.ts";
import { openGate } from "#outbound/gate.ts";

const SECRET = "canary-4711-secret";

/** The writes of a node, and how they ended. */
function openWrites(t: TestContext, signal: AbortSignal, whileBegun: () => void = () => {}) {
  const ended: unknown[] = [];
  const journal = {
    beginWrite: async () => {
      whileBegun();
      return await Promise.resolve(true);
    },
    endWrite: async (write: unknown) => await Promise.resolve(ended.push(write) > 0),
    mayWrite: () => {},
  };
  const gate = openGate({ allow: [] });
  t.after(() => gate.close());
  const run = { journal, lease: { epoch: 1 }, redact: makeRedactor([SECRET]) } as unknown as RunContext;
  return { ended, writes: nodeWrites(run, "sends", openTarget(gate, [], null), signal) };
}

test("a write whose run is stopped while its intent is stored is ruled out, and not done", async (t) => {
  const stop = new AbortController();
  const { writes, ended } = openWrites(t, stop.signal, () => stop.abort(new RunStopped("cancelled")));
  await assert.rejects(writes.commit(7), RunStopped);
  const nothing = { outcome: null, detail: null, sent: null };
  assert.deepEqual(ended, [{ nodeId: "sends", ordinal: 7, epoch: 1, status: "ruled_out", ...nothing }]);
});

test("why a write is uncertain, and the request that is shown with it, hold no secret", async (t) => {
  const { writes, ended } = openWrites(t, new AbortController().signal);
  const request = { method: "POST", url: `/orders?key=${SECRET}`, body: `{"token":"${SECRET}"}` };
  await writes.doubt(0, `the target said "${SECRET}"`, request);
  assert.deepEqual(ended, [
    {
      nodeId: "sends",
      ordinal: 0,
      epoch: 1,
      status: "in_doubt",
      outcome: null,
      detail: 'the target said "[REDACTED]"',
      sent: 'POST /orders?key=[REDACTED]\n{"token":"[REDACTED]"}',
    },
  ]);
});
