import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Answer } from "../caller.ts";
import { completedRun, createSession, failedRun, foreign, readResults, trigger } from "../flows.ts";
import { assertProblem } from "../shapes.ts";
import { deployment, first, limited, prove, section } from "../suite.ts";
import { openCaller } from "../caller.ts";

/** One request for every status that a caller can bring about, with the status. */
async function failures(): Promise<readonly (readonly [number, Answer])[]> {
  const key = { "idempotency-key": randomUUID() };
  await createSession(first());
  await first().post("/blueprints/conformance-open/trigger", {}, key);
  return [
    [401, await openCaller(deployment().baseUrl, null).get("/credential-sessions/sess_x")],
    [403, await limited().post("/blueprints/conformance-echo/trigger", { order: "1" })],
    [404, await first().get("/credential-sessions/sess_unknown")],
    [404, await first().get("/no/such/path")],
    [404, await first().delete(`/credentials/${(await foreign()).credential}`)],
    [400, await first().post("/blueprints/conformance-echo/trigger", {})],
    [409, await first().get(`/blueprint-runs/${await failedRun()}/results`)],
    [409, await first().post("/blueprints/conformance-open/trigger", { different: true }, key)],
    [422, await first().post("/credential-sessions", {})],
    [422, await first().post("/credential-sessions", "{")],
    [422, await first().post("/blueprints/conformance-open/trigger", [])],
    [422, await first().get(`/blueprint-runs/${await completedRun()}/results?deliveryMethod=mail`)],
    [415, await first().post("/credential-sessions", "<a/>", { "content-type": "application/xml" })],
  ];
}

section("Error object", [
  prove(
    [
      'Spec, Error object: "One of authentication_error, authorization_error, not_found, validation_error, conflict, rate_limit_exceeded, internal_error"',
      'Spec, Error object: "error.message | string | yes"',
      'Spec, Error object: "error.details | array | no | Items below"',
      'Spec, Error object: "error.details[].message | string | yes"',
      'Spec, Error object: "error.details[].code | string or null | no | Machine-readable code"',
      'Spec, Error object: "Every failure response has the single top-level key error"',
      'Spec, Errors: "Envelope: {error: {type, message, details?}}"',
    ],
    "every failure that a caller can bring about has the one envelope and nothing beside it",
    async () => {
      for (const [status, answer] of await failures()) assertProblem(answer, status);
    },
  ),
  prove(
    'Spec, Error object: "Dot-notation path of the offending request field"',
    "a detail names the field, with dots into an input's value",
    async () => {
      const wrong = await first().post("/blueprints/conformance-echo/trigger", {
        order: "1",
        period: { from: 7 },
      });
      assertProblem(wrong, 422, { code: "invalid_input_data", field: "period.from" });
      const alias = await first().post("/blueprints/conformance-ledger/trigger", {
        credential_ids: "cred_unknown",
      });
      assertProblem(alias, 422, { code: "invalid_input_data", field: "credential_ids" });
    },
  ),
  prove(
    'Spec, Error object: "Success responses carry no success wrapper"',
    "the fields of a success stand at the top of its body",
    async () => {
      const run = await completedRun();
      assert.equal(typeof (await createSession(first())).at("id"), "string");
      assert.deepEqual(Object.keys((await trigger("conformance-open")).object()), [
        "id",
        "run_key",
        "status",
      ]);
      assert.equal((await first().get(`/blueprint-runs/${run}/status`)).at("id"), run);
      assert.equal((await readResults(run)).at("dataDeliveryMethod"), "direct");
    },
  ),
]);
