import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import {
  connectLedger,
  createSession,
  failedRun,
  foreign,
  PASSWORD_STRATEGY,
  trigger,
  waitForRun,
} from "../flows.ts";
import { assertProblem } from "../shapes.ts";
import { first, prove, section } from "../suite.ts";

section("Errors", [
  prove(
    [
      'Spec, Errors: "422 | validation_error | Input validation failed; see details[]"',
      'Spec, Errors: "invalid_input_data | A request field is malformed, references an unknown resource, or fails format validation"',
      'Spec, Errors: "details[].code values (present only sometimes)"',
    ],
    "a malformed field, an unknown resource and a failed check are 422 with a detail of code invalid_input_data",
    async () => {
      const body = { strategy_id: PASSWORD_STRATEGY };
      const ledger = "/blueprints/conformance-ledger/trigger";
      const cases = [
        ["strategy_id", await first().post("/credential-sessions", { strategy_id: 7 })],
        ["strategy_id", await first().post("/credential-sessions", { strategy_id: "strat_unknown" })],
        [
          "return_url",
          await first().post("/credential-sessions", { ...body, return_url: "https://evil.example" }),
        ],
        ["credential_id", await first().post(ledger, { credential_id: "cred_unknown" })],
        ["credential_id", await first().post(ledger, { credential_id: (await foreign()).credential })],
        ["credential_id", await first().post(ledger, {})],
        [
          "period",
          await first().post("/blueprints/conformance-echo/trigger", { order: "1", period: "not json" }),
        ],
      ] as const;
      for (const [field, answer] of cases) assertProblem(answer, 422, { code: "invalid_input_data", field });
      assert.equal((await first().get("/credential-sessions/sess_unknown")).at("error.details"), undefined);
    },
  ),
  prove(
    [
      'Spec, Errors: "idempotency_key_reuse | An Idempotency-Key was used earlier with a different body; returned as 409 conflict"',
      'Spec, Errors: "delete credential may return 409"',
    ],
    "a key of an earlier request with another body is 409 at each of the three endpoints",
    async () => {
      const key = { "idempotency-key": randomUUID() };
      assert.equal(
        (await first().post("/credential-sessions", { strategy_id: PASSWORD_STRATEGY }, key)).status,
        201,
      );
      const detail = { code: "idempotency_key_reuse" };
      assertProblem(
        await first().post("/credential-sessions", { strategy_id: "strat_unknown" }, key),
        409,
        detail,
      );
      assertProblem(await first().post("/blueprints/conformance-open/trigger", {}, key), 409, detail);
      assertProblem(await first().delete(`/credentials/${await connectLedger()}`, key), 409, detail);
      await createSession(first());
    },
  ),
  prove(
    'Spec, Errors: "Every failed run reports this code today"',
    "a failed login and a file that can't be read fail their runs with the one code",
    async () => {
      const login = await first().get(`/blueprint-runs/${await failedRun()}/status`);
      const form = new FormData();
      form.set("order", "1");
      form.set("attachment", new Blob(['a,b\n"unclosed']), "broken.csv");
      const { last } = await waitForRun((await trigger("conformance-echo", form)).string("id"));
      for (const status of [login, last]) {
        assert.equal(status.at("status"), "failed");
        assert.equal(status.at("error.code"), "execution_failed");
      }
    },
  ),
]);
