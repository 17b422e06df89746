import assert from "node:assert/strict";
import { completedRun, createSession, readResults, sharedLedger } from "../flows.ts";
import { UUID } from "../shapes.ts";
import { first, prove, section } from "../suite.ts";

section("Identifier prefixes", [
  prove(
    [
      'Spec, Identifier prefixes: "All ids are opaque strings with a prefix"',
      'Spec, Identifier prefixes: "cred_ | Vaulted credential"',
      'Spec, Identifier prefixes: "sess_ | Credential session"',
      'Spec, Identifier prefixes: "strat_ | Authentication strategy"',
      'Spec, Identifier prefixes: "run_ | Blueprint run"',
      'Spec, Identifier prefixes: "bp_ | Blueprint"',
    ],
    "every id that the service shows begins with the prefix of its resource",
    async () => {
      const session = await createSession(first());
      const status = await first().get(`/blueprint-runs/${await completedRun()}/status`);
      assert.match(await sharedLedger(), /^cred_\w{20,}$/);
      assert.match(session.string("id"), /^sess_\w{20,}$/);
      assert.match(session.string("strategy_id"), /^strat_/);
      assert.match(status.string("id"), /^run_\w{20,}$/);
      assert.match(status.string("blueprint_id"), /^bp_\w{20,}$/);
    },
  ),
  prove(
    [
      'Spec, Identifier prefixes: "A run also has run_key, a UUID string"',
      'Spec, Identifier prefixes: "either the run_... id or the run_key is accepted"',
    ],
    "a run's key is a UUID, and finds its status and its results as its id does",
    async () => {
      const run = await completedRun();
      const byId = await first().get(`/blueprint-runs/${run}/status`);
      const runKey = byId.string("run_key");
      assert.match(runKey, UUID);
      assert.equal((await first().get(`/blueprint-runs/${runKey}/status`)).text, byId.text);
      assert.equal((await readResults(runKey)).text, (await readResults(run)).text);
    },
  ),
  prove(
    'Spec, Identifier prefixes: "are provisioned by the service operator for the customer\'s account and are opaque strings"',
    "the operator's strategy id and Blueprint key are taken as they are, letter for letter",
    async () => {
      const session = await createSession(first(), { strategy_id: "strat_conformance_password" });
      assert.equal(session.at("strategy_id"), "strat_conformance_password");
      const upper = await first().post("/credential-sessions", { strategy_id: "STRAT_CONFORMANCE_PASSWORD" });
      assert.equal(upper.status, 422);
      assert.equal((await first().post("/blueprints/CONFORMANCE-OPEN/trigger", {})).status, 404);
      assert.equal((await first().post("/blueprints/conformance-open/trigger", {})).status, 202);
    },
  ),
]);
