import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  completedRun,
  connect,
  connectLedger,
  failedRun,
  trigger,
  waitForRun,
  wrongLogin,
} from "../flows.ts";
import { assertProjection } from "../shapes.ts";
import { deployment, first, prove, section } from "../suite.ts";

const state = async (run: string): Promise<string> => {
  const answer = await first().get(`/blueprint-runs/${run}/status`);
  assertProjection(answer.object());
  return `${answer.string("status")}/${answer.string("progress_step")}`;
};

section("Blueprint run status", [
  prove(
    [
      'Spec, Blueprint run status: "queued | no | queued, authenticating"',
      'Spec, Blueprint run status: "A successful trigger creates a run with status queued"',
    ],
    "a run is queued when it is triggered and while it logs in",
    async () => {
      const username = `hold-${randomUUID()}`;
      const atLogin = deployment().target.hold(username);
      const credential = await connectLedger({ username, password: "right-held" });
      const triggered = await trigger("conformance-ledger", { credential_id: credential });
      assert.equal(triggered.at("status"), "queued");
      await atLogin.reached;
      assert.equal(await state(triggered.string("id")), "queued/authenticating");
      atLogin.release();
      const { seen } = await waitForRun(triggered.string("id"));
      assert.equal(seen.at(-1), "completed/completed");
    },
  ),
  prove(
    'Spec, Blueprint run status: "running | no | running, awaiting_review"',
    "a run whose target has not answered yet is running, with the step running",
    async () => {
      const token = `hold-${randomUUID()}`;
      const atNode = deployment().target.hold(token);
      const ids = [
        await connect("strat_conformance_bearer", { token }),
        await connect("strat_conformance_headers", { key: "a-key" }),
      ];
      const run = (await trigger("conformance-systems", { credential_id: ids.join(",") })).string("id");
      await atNode.reached;
      assert.equal(await state(run), "running/running");
      atNode.release();
      assert.equal((await waitForRun(run)).last.at("status"), "completed");
    },
  ),
  prove(
    'Spec, Blueprint run status: "finer Blueprint-defined milestones may be added to progress_step"',
    "a milestone of the Blueprint is shown as the step of a running run",
    async () => {
      const name = `hold-${randomUUID()}`;
      const hold = deployment().target.hold(name);
      const run = (await trigger("conformance-open", { hold: name })).string("id");
      await hold.reached;
      assert.equal(await state(run), "running/reading_list");
      hold.release();
      await waitForRun(run);
    },
  ),
  prove(
    [
      'Spec, Blueprint run status: "completed | yes | completed"',
      'Spec, Blueprint run status: "failed | yes | failed"',
    ],
    "completed and failed are the end, with a step of the same name, and never change again",
    async () => {
      for (const [run, status] of [
        [await completedRun(), "completed"],
        [await failedRun(), "failed"],
      ] as const) {
        const before = await first().get(`/blueprint-runs/${run}/status`);
        assert.equal(await state(run), `${status}/${status}`);
        await sleep(300);
        assert.equal((await first().get(`/blueprint-runs/${run}/status`)).text, before.text);
      }
    },
  ),
  prove(
    'Spec, Errors: "The run did not complete"',
    "a run whose login fails goes from queued to failed and never shows running",
    async () => {
      const run = await trigger("conformance-ledger", { credential_id: await connectLedger(wrongLogin()) });
      const { last, seen } = await waitForRun(run.string("id"));
      assert.ok(
        seen.every((each) => /^(queued|failed)\//.test(each)),
        seen.join(", "),
      );
      assert.equal(last.at("error.code"), "execution_failed");
    },
  ),
]);
