import assert from "node:assert/strict";
import { complete, connect, createSession, openHostedForm, readResults, submitHostedForm } from "../flows.ts";
import { assertProblem } from "../shapes.ts";
import { first, prove, section } from "../suite.ts";

const LABELS = {
  strat_conformance_password: ["Ledger user", "Ledger password"],
  strat_conformance_code: ["Ledger user", "Authenticator secret"],
  strat_conformance_bearer: ["API token"],
  strat_conformance_headers: ["API key"],
} as const;

section("Authentication strategy", [
  prove(
    [
      'Spec, Authentication strategy: "A template that defines which fields the target system needs"',
      'Spec, Authentication strategy: "It determines what the hosted form renders"',
    ],
    "the hosted form asks for the fields of its strategy and for no other's",
    async () => {
      for (const [strategyId, labels] of Object.entries(LABELS)) {
        const session = await createSession(first(), { strategy_id: strategyId });
        const page = await openHostedForm(session.string("hosted_url"));
        for (const label of Object.values(LABELS).flat()) {
          assert.equal(
            page.includes(label),
            (labels as readonly string[]).includes(label),
            `${strategyId}: ${label}`,
          );
        }
      }
    },
  ),
  prove(
    'Spec, Authentication strategy: "(for example username and password, bearer token, custom headers, TOTP)"',
    "a bearer token and a custom header log in, each at its own system",
    async () => {
      const token = await connect("strat_conformance_bearer", { token: "a-token" });
      const header = await connect("strat_conformance_headers", { key: "a-key" });
      const run = await complete("conformance-systems", { credential_id: `${token},${header}` });
      const results = await readResults(run);
      assert.deepEqual(results.at("results.by_token.records.0.data"), { system: "token" });
      assert.deepEqual(results.at("results.by_header.records.0.data"), { system: "header" });
    },
  ),
  prove(
    'Spec, Authentication strategy: "Strategy ids are provisioned by the service operator per account"',
    "a strategy of another account does not exist for this one",
    async () => {
      const answer = await first().post("/credential-sessions", { strategy_id: "strat_conformance_other" });
      assertProblem(answer, 422, { code: "invalid_input_data", field: "strategy_id" });
    },
  ),
  prove(
    'Spec, Credential session status: "end user submits the hosted form | submission succeeds | completed"',
    "a form with a missing field does not succeed: the session stays pending, and the corrected form completes it",
    async () => {
      const session = await createSession(first());
      const path = `/credential-sessions/${session.string("id")}`;
      const refused = await submitHostedForm(session.string("hosted_url"), { username: "ada", password: "" });
      assert.equal(refused.status, 422);
      assert.equal((await first().get(path)).at("status"), "pending");
      await submitHostedForm(session.string("hosted_url"), { username: "ada", password: "right-now" });
      assert.equal((await first().get(path)).at("status"), "completed");
    },
  ),
]);
