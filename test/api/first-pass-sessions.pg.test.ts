// Spec, POST /credential-sessions; docs/api.md#credential-sessions and docs/decisions/0011: each field of the body.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Caller } from "../caller.ts";
import { assertRefused, openStage, type Stage } from "./stage.ts";

let stage: Stage;
let acme: Caller;
let earlier: number;

before(async () => {
  stage = await openStage();
  acme = stage.acme;
});
after(() => stage?.[Symbol.asyncDispose]());
beforeEach(async () => {
  earlier = await counts();
});

const counts = async () => await stage.count("credential_session");
const createSession = async (body: unknown) => await acme.post("/credential-sessions", body);

test("a session: strategy_id must be a strategy of this account, exactly", async () => {
  for (const strategy_id of [
    undefined,
    null,
    "",
    7,
    true,
    ["strat_acme"],
    { id: "strat_acme" },
    "strat_unknown",
    "strat_globex",
    " strat_acme",
    "STRAT_ACME",
    "strat_acme\u0000",
  ]) {
    assertRefused(await createSession({ strategy_id }), 422, "strategy_id");
  }
  assertRefused(await acme.post("/credential-sessions"), 422, "strategy_id");
  assertRefused(
    await createSession({ strategy_id: 1, name: 2, return_url: 3 }),
    422,
    "strategy_id",
    "name",
    "return_url",
  );
  assert.deepEqual(await counts(), earlier);
});

test("a session: return_url must be on the allowlist by its exact origin, and is echoed as it was given", async () => {
  const wrong = [
    "http://app.acme.example/",
    "https://app.acme.example:8443/",
    "https://www.app.acme.example/",
    "https://acme.example/",
    "https://app.acme.example.evil.example/",
    "https://app.acme.example@evil.example/",
    "https://evil.example/https://app.acme.example",
    "//app.acme.example/",
    "/done",
    "app.acme.example",
    "",
    "javascript:alert(1)",
    "https://app.acme.example\\@evil.example",
    "https://app.acme.example./",
    "https://app.globex.example/",
    "http://localhost/",
    "http://127.0.0.1:3000/",
    "https://app.acme.example/\n",
    `https://app.acme.example/${"a".repeat(2_100)}`,
  ];
  for (const return_url of [...wrong, 7, ["https://app.acme.example"]]) {
    assertRefused(await createSession({ strategy_id: "strat_acme", return_url }), 422, "return_url");
  }
  assert.deepEqual(await counts(), earlier);
  for (const return_url of [
    "https://app.acme.example",
    "HTTPS://APP.acme.example:443/a/../b?x=%2F&y#z",
    "http://localhost:3000/done?session_id=old",
  ]) {
    const { status, body } = await createSession({ strategy_id: "strat_acme", return_url });
    assert.deepEqual([status, body.return_url], [201, return_url]);
  }
});

test("a session: name has at most 255 characters and no U+0000; null is an omitted field; unknown keys are ignored", async () => {
  for (const name of ["x".repeat(256), "é".repeat(256), "a\u0000b", 7, {}])
    assertRefused(await createSession({ strategy_id: "strat_acme", name }), 422, "name");
  assert.deepEqual(await counts(), earlier);
  for (const body of [
    { strategy_id: "strat_acme", name: null, return_url: null, unknown: { deep: 1 } },
    { strategy_id: "strat_acme", name: "🔑".repeat(255) },
    { strategy_id: "strat_acme", name: "" },
  ]) {
    const answer = await createSession(body);
    assert.deepEqual([answer.status, answer.body.return_url, "name" in answer.body], [201, null, false]);
  }
});
