import assert from "node:assert/strict";
import {
  complete,
  connectLedger,
  createSession,
  foreign,
  rightLogin,
  sharedLedger,
  submitHostedForm,
} from "../flows.ts";
import { assertProblem, CREDENTIAL_ID, SESSION_FIELDS } from "../shapes.ts";
import { first, prove, section } from "../suite.ts";

section("Credential", [
  prove(
    [
      'Spec, Credential: "An opaque vaulted object identified by cred_"',
      'Spec, Credential: "No fields are exposed"',
    ],
    "a completed session shows the credential's id and nothing of what it holds",
    async () => {
      const login = rightLogin();
      const session = await createSession(first(), { name: "Ada's ledger" });
      await submitHostedForm(session.string("hosted_url"), login);
      const completed = await first().get(`/credential-sessions/${session.string("id")}`);
      assert.match(completed.string("credential_id"), CREDENTIAL_ID);
      assert.deepEqual(Object.keys(completed.object()).toSorted(), SESSION_FIELDS);
      for (const value of [login.username, login.password, "Ada's ledger"])
        assert.ok(!completed.text.includes(value));
    },
  ),
  prove(
    'Spec, Credential: "A credential may be used by runs of the account that owns it"',
    "a credential works for several runs of its account, and for none of another",
    async () => {
      const credential = await sharedLedger();
      await complete("conformance-ledger", { credential_id: credential });
      await complete("conformance-ledger", { credential_id: credential });
      const body = { credential_id: (await foreign()).credential };
      assertProblem(await first().post("/blueprints/conformance-ledger/trigger", body), 422, {
        field: "credential_id",
      });
    },
  ),
  prove(
    'Spec, Credential: "DELETE /credentials/{credentialId} | deleted | hard delete: secrets destroyed, id no longer resolves; later triggers referencing it fail"',
    "a deleted credential can't be deleted again and starts no run",
    async () => {
      const credential = await connectLedger();
      await complete("conformance-ledger", { credential_id: credential });
      assert.equal((await first().delete(`/credentials/${credential}`)).status, 204);
      assertProblem(await first().delete(`/credentials/${credential}`), 404);
      const later = await first().post("/blueprints/conformance-ledger/trigger", {
        credential_id: credential,
      });
      assertProblem(later, 422, { code: "invalid_input_data", field: "credential_id" });
    },
  ),
]);
