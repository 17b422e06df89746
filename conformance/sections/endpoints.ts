import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { openCaller } from "../caller.ts";
import { completedRun, connectLedger, createSession, PASSWORD_STRATEGY } from "../flows.ts";
import { assertProblem } from "../shapes.ts";
import { deployment, first, prove, section } from "../suite.ts";

section("Endpoints", [
  prove(
    'Spec, Endpoints: "All endpoints require bearer authentication"',
    "each of the six endpoints answers 401 without a key, also for what exists",
    async () => {
      const nobody = openCaller(deployment().baseUrl, null);
      const run = await completedRun();
      const session = (await createSession(first())).string("id");
      assertProblem(await nobody.post("/credential-sessions", { strategy_id: PASSWORD_STRATEGY }), 401);
      assertProblem(await nobody.get(`/credential-sessions/${session}`), 401);
      assertProblem(await nobody.delete(`/credentials/${await connectLedger()}`), 401);
      assertProblem(await nobody.post("/blueprints/conformance-open/trigger", {}), 401);
      assertProblem(await nobody.get(`/blueprint-runs/${run}/status`), 401);
      assertProblem(await nobody.get(`/blueprint-runs/${run}/results`), 401);
    },
  ),
  prove(
    [
      'Spec, Endpoints: "Mutating endpoints accept the Idempotency-Key header"',
      'Spec, DELETE /credentials/{credentialId}: "Optional header Idempotency-Key"',
      'Spec, POST /blueprints/{blueprintKey}/trigger: "Optional header Idempotency-Key"',
    ],
    "each of the three mutating endpoints works without a key, and replays with one",
    async () => {
      const headers = () => ({ "idempotency-key": randomUUID() });
      const credential = await connectLedger();
      const requests = [
        (sent: Record<string, string>) =>
          first().post("/credential-sessions", { strategy_id: PASSWORD_STRATEGY }, sent),
        (sent: Record<string, string>) => first().post("/blueprints/conformance-open/trigger", {}, sent),
      ];
      for (const request of requests) {
        const sent = headers();
        const answer = await request(sent);
        assert.equal((await request(sent)).text, answer.text);
        assert.notEqual((await request({})).text, answer.text);
      }
      const sent = headers();
      assert.equal((await first().delete(`/credentials/${credential}`, sent)).status, 204);
      assert.equal((await first().delete(`/credentials/${credential}`, sent)).status, 204);
      assert.equal((await first().delete(`/credentials/${await connectLedger()}`)).status, 204);
    },
  ),
]);
