import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import {
  complete,
  completedRun,
  connectLedger,
  failedRun,
  trigger,
  waitForRun,
  wrongLogin,
} from "../flows.ts";
import { assertProjection, TIMESTAMP } from "../shapes.ts";
import { deployment, first, prove, section } from "../suite.ts";

section("Run status projection", [
  prove(
    [
      'Spec, Run status projection: "id | string | run_..."',
      'Spec, Run status projection: "run_key | string | UUID"',
      'Spec, Run status projection: "status | string | queued, running, completed, failed, cancelled"',
      'Spec, Run status projection: "blueprint_id | string | bp_..."',
      'Spec, Run status projection: "created_at | timestamp"',
    ],
    "a projection has its nine fields and no other, and the id and key of its trigger's answer",
    async () => {
      const triggered = await trigger("conformance-open");
      const { last } = await waitForRun(triggered.string("id"));
      assertProjection(last.object());
      assert.equal(last.at("id"), triggered.at("id"));
      assert.equal(last.at("run_key"), triggered.at("run_key"));
    },
  ),
  prove(
    [
      'Spec, Run status projection: "started_at | timestamp or null"',
      'Spec, Run status projection: "ended_at | timestamp or null"',
      'Spec, Run status projection: "Finer step; values queued, authenticating, running, awaiting_review, completed, failed, cancelled, unknown; open set"',
    ],
    "started_at and ended_at are null until it is so, in the login, in the middle and at the end",
    async () => {
      const { target } = deployment();
      const username = `hold-${randomUUID()}`;
      const atLogin = target.hold(username);
      const credential = await connectLedger({ username, password: "right-held" });
      const run = (await trigger("conformance-ledger", { credential_id: credential })).string("id");
      await atLogin.reached;
      const queued = await first().get(`/blueprint-runs/${run}/status`);
      assertProjection(queued.object());
      assert.deepEqual([queued.at("started_at"), queued.at("ended_at")], [null, null]);
      assert.equal(queued.at("progress_step"), "authenticating");
      atLogin.release();
      const { last } = await waitForRun(run);
      const times = ["created_at", "started_at", "ended_at"].map((field) => last.string(field));
      for (const time of times) assert.match(time, TIMESTAMP);
      assert.deepEqual(times, times.toSorted());
      assert.equal(last.at("progress_step"), "completed");
    },
  ),
  prove(
    [
      'Spec, Run status projection: "Present (non-null) only when status is failed; shape {code: string, message: string}"',
      'Spec, Errors: "when run status is failed, the status projection\'s error is {code, message}; otherwise error is null"',
    ],
    "error is null while a run goes on and when it completed, and has a code and a message when it failed",
    async () => {
      const name = `hold-${randomUUID()}`;
      const hold = deployment().target.hold(name);
      const run = (await trigger("conformance-open", { hold: name })).string("id");
      await hold.reached;
      assert.equal((await first().get(`/blueprint-runs/${run}/status`)).at("error"), null);
      hold.release();
      assert.equal((await waitForRun(run)).last.at("error"), null);
      const failed = await first().get(`/blueprint-runs/${await failedRun()}/status`);
      assert.deepEqual(Object.keys(failed.at("error") ?? {}), ["code", "message"]);
      assert.notEqual(failed.string("error.message"), "");
      assert.notEqual(failed.string("error.code"), "");
    },
  ),
  prove(
    'Spec, Run status projection: "The projection never contains run inputs, outputs, file URLs, raw error strings or other run content"',
    "neither inputs, metadata and name nor outputs, target addresses and what the target said show in a status",
    async () => {
      const canary = randomUUID();
      const body = { order: `order ${canary}`, text: canary, data: [canary], run_name: `name ${canary}` };
      const run = await complete("conformance-echo", body);
      const done = await first().get(`/blueprint-runs/${run}/status`);
      assert.ok(!done.text.includes(canary));
      const ledger = await first().get(`/blueprint-runs/${await completedRun()}/status`);
      assert.doesNotMatch(ledger.text, /E-1|https?:|downloads/);
      const login = { ...wrongLogin(), password: `wrong-${canary}` };
      const failed = await trigger("conformance-ledger", { credential_id: await connectLedger(login) });
      const { last } = await waitForRun(failed.string("id"));
      assert.equal(last.at("status"), "failed");
      for (const text of [canary, login.username, "http://", "/login"])
        assert.ok(!last.text.includes(text), text);
      // An id, a key and a time may have these digits by chance, and are checked to be nothing else.
      assertProjection(last.object());
      for (const words of ["progress_step", "error.code", "error.message"])
        assert.ok(!last.string(words).includes("401"), words);
    },
  ),
]);
