import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { openCaller } from "../caller.ts";
import { createSession, PASSWORD_STRATEGY } from "../flows.ts";
import { assertProblem, assertSession } from "../shapes.ts";
import { deployment, first, prove, section } from "../suite.ts";

const create = async (body: unknown, headers: Record<string, string> = {}) =>
  await first().post("/credential-sessions", body, headers);

section("POST /credential-sessions", [
  prove(
    [
      'Spec, POST /credential-sessions: "Creates a credential session"',
      'Spec, POST /credential-sessions: "Request body (JSON, Content-Type: application/json)"',
      'Spec, POST /credential-sessions: "Response body: the credential session object (see Resources); on creation status is pending and credential_id, completed_at are null"',
    ],
    "a JSON body makes a session of its own each time; another content type is refused",
    async () => {
      const [one, two] = [
        await create({ strategy_id: PASSWORD_STRATEGY }),
        await create({ strategy_id: PASSWORD_STRATEGY }),
      ];
      assert.equal(one.status, 201);
      assertSession(one.object(), "pending");
      assert.notEqual(one.at("id"), two.at("id"));
      assert.notEqual(one.at("hosted_url"), two.at("hosted_url"));
      const text = JSON.stringify({ strategy_id: PASSWORD_STRATEGY });
      assertProblem(await create(text, { "content-type": "text/plain" }), 415);
    },
  ),
  prove(
    'Spec, POST /credential-sessions: "strategy_id | string | yes | strat_... of this account"',
    "strategy_id must be there, a string, and a strategy of the account",
    async () => {
      for (const strategyId of [
        undefined,
        null,
        7,
        {},
        [PASSWORD_STRATEGY],
        "",
        "strat_unknown",
        "strat_\u0000",
        `${PASSWORD_STRATEGY} `,
      ]) {
        const answer = await create({ strategy_id: strategyId });
        assertProblem(answer, 422, { code: "invalid_input_data", field: "strategy_id" });
      }
    },
  ),
  prove(
    'Spec, POST /credential-sessions: "name | string | no | Label for the vaulted credential in the operator dashboard"',
    "name is optional, must be a string, and is not shown to the caller",
    async () => {
      const name = `label ${randomUUID()}`;
      const session = await createSession(first(), { name });
      assert.ok(!session.text.includes(name));
      assert.equal((await create({ strategy_id: PASSWORD_STRATEGY, name: null })).status, 201);
      assertProblem(await create({ strategy_id: PASSWORD_STRATEGY, name: 7 }), 422, { field: "name" });
      assertProblem(await create({ strategy_id: PASSWORD_STRATEGY, name: "x".repeat(256) }), 422, {
        field: "name",
      });
    },
  ),
  prove(
    [
      'Spec, POST /credential-sessions: "Its exact origin (scheme, host, port) must be allowlisted for the account by the operator"',
      'Spec, POST /credential-sessions: "Path and query may vary under that origin"',
    ],
    "any path and query under an allowlisted origin is taken, and echoed exactly",
    async () => {
      const urls = [
        "https://app.conformance.example",
        "https://app.conformance.example/",
        "https://app.conformance.example:443/a/b?c=d&e=%20f#g",
        "http://127.0.0.1:4799/back?session=1",
      ];
      for (const url of urls)
        assert.equal((await createSession(first(), { return_url: url })).at("return_url"), url);
    },
  ),
  prove(
    'Spec, POST /credential-sessions: "A different scheme, subdomain or port is rejected"',
    "another scheme, host, subdomain or port is refused, and so is what only looks like the origin",
    async () => {
      const urls = [
        "http://app.conformance.example/",
        "https://www.app.conformance.example/",
        "https://conformance.example/",
        "https://app.conformance.example:8443/",
        "http://127.0.0.1:4798/",
        "https://127.0.0.1:4799/",
        "https://other.conformance.example/",
        "https://app.conformance.example.evil.example/",
        "https://app.conformance.example@evil.example/",
        "https://evil.example\\@app.conformance.example/",
        "//app.conformance.example/",
        "javascript://app.conformance.example/%0aalert(1)",
        "/relative",
        "",
      ];
      for (const url of urls) {
        const answer = await create({ strategy_id: PASSWORD_STRATEGY, return_url: url });
        assertProblem(answer, 422, { code: "invalid_input_data", field: "return_url" });
      }
    },
  ),
  prove(
    'Spec, POST /credential-sessions: "Errors: 401; validation failure (for example invalid strategy_id or a return_url failing the allowlist) returns validation_error with details[].field naming the field; 409 on idempotency key reuse with a different body"',
    "each documented error of the session's creation",
    async () => {
      const body = { strategy_id: PASSWORD_STRATEGY };
      assertProblem(await openCaller(deployment().baseUrl, null).post("/credential-sessions", body), 401);
      assertProblem(await create({ strategy_id: "strat_unknown" }), 422, { field: "strategy_id" });
      const evil = { ...body, return_url: "https://evil.example/" };
      assertProblem(await create(evil), 422, { field: "return_url" });
      const key = { "idempotency-key": randomUUID() };
      assert.equal((await create(body, key)).status, 201);
      assertProblem(await create({ ...body, name: "another" }, key), 409, { code: "idempotency_key_reuse" });
    },
  ),
]);
