import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { openCaller, send } from "../caller.ts";
import { complete, connectLedger, foreign } from "../flows.ts";
import { assertProblem } from "../shapes.ts";
import { deployment, first, prove, section } from "../suite.ts";

section("DELETE /credentials/{credentialId}", [
  prove(
    'Spec, DELETE /credentials/{credentialId}: "Success: 204 with an empty body"',
    "a deletion answers 204 with no byte of body",
    async () => {
      const answer = await first().delete(`/credentials/${await connectLedger()}`);
      assert.deepEqual([answer.status, answer.text], [204, ""]);
    },
  ),
  prove(
    'Spec, DELETE /credentials/{credentialId}: "Path parameter credentialId: string, cred_..."',
    "an id that is no credential of the account is 404, and the other account's credential lives on",
    async () => {
      const { credential } = await foreign();
      for (const id of ["cred_unknown", "x", "%00", "a".repeat(400), credential]) {
        assertProblem(await first().delete(`/credentials/${id}`), 404);
      }
    },
  ),
  prove(
    'Spec, DELETE /credentials/{credentialId}: "Errors: 401 authentication_error, 404 not_found, 409 conflict"',
    "each documented error of the deletion; a refused one deletes nothing",
    async () => {
      const [credential, second] = [await connectLedger(), await connectLedger()];
      assertProblem(await openCaller(deployment().baseUrl, null).delete(`/credentials/${credential}`), 401);
      assertProblem(await first().delete("/credentials/cred_unknown"), 404);
      const key = { "idempotency-key": randomUUID() };
      assert.equal((await first().delete(`/credentials/${credential}`, key)).status, 204);
      assertProblem(await first().delete(`/credentials/${second}`, key), 409, {
        code: "idempotency_key_reuse",
      });
      await complete("conformance-ledger", { credential_id: second });
    },
  ),
  prove(
    'Spec, DELETE /credentials/{credentialId}: "No body."',
    "what is sent as a body is not looked at, neither for the deletion nor for its replay",
    async () => {
      const credential = await connectLedger();
      const key = randomUUID();
      for (const body of ["{", "{}", undefined]) {
        const headers = { authorization: `Bearer ${deployment().apiKey}`, "idempotency-key": key };
        const url = `${deployment().baseUrl}/credentials/${credential}`;
        assert.equal((await send("DELETE", url, { headers, body })).status, 204);
      }
    },
  ),
]);
