import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { completedRun, foreign, sharedLedger, trigger, waitForRun } from "../flows.ts";
import { assertProblem, assertProjection } from "../shapes.ts";
import { first, prove, section } from "../suite.ts";

section("GET /blueprint-runs/{runId}/status", [
  prove(
    'Spec, GET /blueprint-runs/{runId}/status: "Response 200: the run status projection"',
    "every poll from the trigger to the end is 200 and a whole projection",
    async () => {
      const run = (await trigger("conformance-ledger", { credential_id: await sharedLedger() })).string("id");
      let answer = await first().get(`/blueprint-runs/${run}/status`);
      for (let poll = 0; poll < 400 && answer.at("ended_at") === null; poll++) {
        assert.equal(answer.status, 200);
        assertProjection(answer.object());
        answer = await first().get(`/blueprint-runs/${run}/status`);
      }
      const { last } = await waitForRun(run);
      assertProjection(last.object());
      assert.equal(last.at("status"), "completed");
    },
  ),
  prove(
    'Spec, GET /blueprint-runs/{runId}/status: "Path parameter runId: run_... id or UUID run_key"',
    "both names of a run find it; anything else is 404, another account's run under both of its names too",
    async () => {
      const run = await completedRun();
      const byId = await first().get(`/blueprint-runs/${run}/status`);
      const byKey = await first().get(`/blueprint-runs/${byId.string("run_key").toUpperCase()}/status`);
      assert.equal(byKey.text, byId.text);
      const strange = await foreign();
      const ids = ["run_unknown", randomUUID(), "x", "%00", "a".repeat(400), strange.run, strange.runKey];
      for (const id of ids) assertProblem(await first().get(`/blueprint-runs/${id}/status`), 404);
    },
  ),
]);
