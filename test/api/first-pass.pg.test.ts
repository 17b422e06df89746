// Spec, Authentication; docs/decisions/0011: who may see what, and that a refusal says no more than it must.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { KEY_SCOPES } from "#domain/key-scope.ts";
import { newApiKey } from "#lib/api-key.ts";
import { connect, openCaller } from "../caller.ts";
import { bearer, json, openStage, type RawAnswer, type RawRequest, type Stage } from "./stage.ts";

let stage: Stage;

before(async () => {
  stage = await openStage();
});
after(() => stage?.[Symbol.asyncDispose]());

/** Every failure has exactly the key `error`, with a type, a message and well-formed details, and is not cached. */
function assertProblem(answer: RawAnswer, status: number, type: string): void {
  assert.equal(answer.status, status, answer.text);
  assert.deepEqual(Object.keys(answer.body), ["error"]);
  assert.equal(answer.body.error.type, type);
  assert.equal(typeof answer.body.error.message, "string");
  for (const detail of answer.body.error.details ?? []) {
    assert.deepEqual(
      Object.keys(detail).filter((key) => !["message", "code", "field"].includes(key)),
      [],
    );
    assert.equal(typeof detail.message, "string");
  }
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.match(String(answer.headers["content-type"]), /^application\/json/);
  assert.ok(answer.headers["x-request-id"]);
}

const ENDPOINTS: readonly RawRequest[] = [
  { method: "POST", path: "/credential-sessions", headers: [json], body: "not json" },
  { method: "GET", path: "/credential-sessions/sess_x" },
  { method: "DELETE", path: "/credentials/cred_x", headers: [["Idempotency-Key", ""]] },
  { method: "POST", path: "/blueprints/open/trigger", headers: [["Content-Type", "text/html"]], body: "x" },
  { method: "GET", path: "/blueprint-runs/run_x/status" },
  { method: "GET", path: "/blueprint-runs/run_x/results?deliveryMethod=wrong" },
  { method: "GET", path: "/nothing/here" },
  { method: "PATCH", path: "/credential-sessions" },
  { method: "GET", path: "" },
];

test("without a valid key every path, also an unknown one, is 401, before anything else of the request is looked at", async () => {
  const { key, installation } = stage;
  const revoked = await installation.createKey("acme", { name: "to revoke" });
  const expired = await installation.createKey("acme", { name: "to expire", lifetimeMs: 3_600_000 });
  const { stdout } = await installation.command("keys", "list", "--json");
  const { items: listed } = JSON.parse(stdout) as { items: { id: string; name: string }[] };
  const idOf = (name: string) => String(listed.find((each) => each.name === name)?.id);
  await installation.command("keys", "revoke", idOf("to revoke"));
  await installation.database.db.query("update api_key set expires_at = app_now() where id = $1", [
    idOf("to expire"),
  ]);
  const unknown = `${key.slice(0, 3)}${Array.from(key.slice(3, 35)).reverse().join("")}${key.slice(35)}`;
  const cases: readonly (readonly [string, RawRequest["headers"]])[] = [
    ["missing", []],
    ["empty", [["Authorization", ""]]],
    ["another scheme", [["Authorization", `Basic ${key}`]]],
    ["no scheme", [["Authorization", key]]],
    ["no key", [["Authorization", "Bearer "]]],
    ["two words", [["Authorization", `Bearer ${key} ${key}`]]],
    ["a comma list", [["Authorization", `Bearer ${key}, Bearer ${key}`]]],
    ["doubled", [bearer(key), bearer(key)]],
    ["doubled, the second wrong", [bearer(key), bearer("x")]],
    ["upper-case key", [bearer(key.toUpperCase())]],
    ["cut short", [bearer(key.slice(0, -1))]],
    ["wrong checksum", [bearer(unknown)]],
    ["revoked", [bearer(revoked)]],
    ["expired", [bearer(expired)]],
    ["U+0000 and quotes", [bearer("lk_%00'--")]],
    ["in another header", [["X-Api-Key", key]]],
  ];
  const texts = new Set<string>();
  for (const [name, authorization] of cases) {
    for (const endpoint of ENDPOINTS) {
      const answer = await stage.send({
        ...endpoint,
        headers: [...(authorization ?? []), ...(endpoint.headers ?? [])],
      });
      assertProblem(answer, 401, "authentication_error");
      assert.equal(answer.headers["www-authenticate"], "Bearer", name);
      texts.add(answer.text);
    }
  }
  // One text for all of them: nobody learns why a key was refused.
  assert.equal(texts.size, 1);
});

test("a well-formed key that was never made is 401 too", async () => {
  assertProblem(
    await stage.send({ path: "/credential-sessions/x", headers: [bearer(newApiKey())] }),
    401,
    "authentication_error",
  );
});

test("the name of the scheme has no upper and lower case (RFC 9110, 11.1)", async () => {
  for (const scheme of ["bearer", "BEARER", "Bearer"]) {
    const answer = await stage.send({
      path: "/credential-sessions/x",
      headers: [["authorization", `${scheme} ${stage.key}`]],
    });
    assertProblem(answer, 404, "not_found");
  }
});

test("an unknown path or method under /api/v1 is 404 with the envelope", async () => {
  for (const [method, path] of [
    ["GET", "/credentials"],
    ["GET", `/credentials/${stage.credential}`],
    ["PUT", `/credentials/${stage.credential}`],
    ["GET", "/credential-sessions"],
    ["POST", "/blueprint-runs/run_x/status"],
    ["GET", "/blueprints/open/trigger"],
    ["GET", "/%2e%2e/x"],
    ["GET", "/credential-sessions/%00"],
    ["GET", "/credential-sessions/sess_x/"],
  ] as const) {
    assertProblem(await stage.send({ method, path, headers: [bearer(stage.key)] }), 404, "not_found");
  }
  const malformed = await stage.send({ path: "/credential-sessions/%ZZ", headers: [bearer(stage.key)] });
  assert.equal(malformed.status, 404);
  assert.deepEqual(Object.keys(malformed.body), ["error"]);
});

test("what belongs to another account looks exactly as if it did not exist", async () => {
  const session = (await stage.acme.post("/credential-sessions", { strategy_id: "strat_acme" })).body;
  const run = (
    await stage.acme.post("/blueprints/with-login/trigger", { credential_id: stage.credential, data: "[]" })
  ).body;
  const other = (id: string) => `${id.slice(0, -6)}${id.slice(-6).split("").reverse().join("")}`;
  const cases: readonly (readonly [method: "get" | "delete" | "post", mine: string, unknown: string])[] = [
    ["get", `/credential-sessions/${session.id}`, `/credential-sessions/${other(session.id)}`],
    ["get", `/credential-sessions/${session.id}`, "/credential-sessions/no-id-at-all"],
    ["delete", `/credentials/${stage.credential}`, `/credentials/${other(stage.credential)}`],
    ["delete", `/credentials/${stage.credential}`, "/credentials/x'--"],
    ["get", `/blueprint-runs/${run.id}/status`, `/blueprint-runs/${other(run.id)}/status`],
    [
      "get",
      `/blueprint-runs/${run.run_key}/status`,
      "/blueprint-runs/00000000-0000-7000-8000-000000000000/status",
    ],
    ["get", `/blueprint-runs/${run.run_key}/status`, "/blueprint-runs/x/status"],
    [
      "get",
      `/blueprint-runs/${run.id}/results`,
      `/blueprint-runs/${other(run.id)}/results?deliveryMethod=wrong`,
    ],
  ];
  for (const [method, mine, unknown] of cases) {
    const [foreign, absent] = [await stage.globex[method](mine), await stage.globex[method](unknown)];
    assert.deepEqual([foreign.status, foreign.text], [404, absent.text], mine);
    assert.equal(absent.status, 404);
  }
  // A Blueprint key of one account is nothing in the other.
  const [foreign, absent] = [
    await stage.acme.post("/blueprints/only-globex/trigger", {}),
    await stage.acme.post("/blueprints/nowhere/trigger", {}),
  ];
  assert.deepEqual([foreign.status, foreign.text], [404, absent.text]);
  assert.equal((await stage.acme.get(`/credential-sessions/${session.id}`)).status, 200);
  assert.equal((await stage.acme.get(`/blueprint-runs/${run.run_key}/status`)).body.id, run.id);
});

test("another account's credential or strategy in a body is 422, with the same text as an unknown one", async () => {
  const run = async (credential_id: string) =>
    await stage.globex.post("/blueprints/with-login/trigger", { credential_id, data: "[]" });
  const [foreign, absent] = [await run(stage.credential), await run("cred_000000000000000000000000")];
  assert.deepEqual([foreign.status, foreign.text], [422, absent.text]);
  assert.deepEqual(
    foreign.body.error.details.map(({ code, field }: any) => [code, field]),
    [["invalid_input_data", "credential_id"]],
  );
  const create = async (strategy_id: string) =>
    await stage.globex.post("/credential-sessions", { strategy_id });
  const [foreignStrategy, absentStrategy] = [await create("strat_acme"), await create("strat_none")];
  assert.deepEqual([foreignStrategy.status, foreignStrategy.text], [422, absentStrategy.text]);
});

test("a key limited to some Blueprints: 403 on the others and on their runs, 404 on what does not exist; sessions and credentials by its scopes", async () => {
  const limited = openCaller(
    stage.service.url,
    await stage.installation.createKey("acme", { blueprints: ["open"], scopes: KEY_SCOPES }),
  );
  const run = (
    await stage.acme.post("/blueprints/with-login/trigger", { credential_id: stage.credential, data: "[]" })
  ).body;
  for (const answer of [
    await limited.post("/blueprints/with-login/trigger", "not json"),
    await limited.get(`/blueprint-runs/${run.id}/status`),
    await limited.get(`/blueprint-runs/${run.run_key}/results?deliveryMethod=wrong`),
  ]) {
    assert.deepEqual(
      [answer.status, answer.body.error.type, Object.keys(answer.body)],
      [403, "authorization_error", ["error"]],
    );
  }
  assert.equal((await limited.post("/blueprints/nowhere/trigger", {})).status, 404);
  const allowed = await limited.post("/blueprints/open/trigger", { needed: 1, needed_too: 2 });
  assert.equal(allowed.status, 202);
  assert.equal((await limited.get(`/blueprint-runs/${allowed.body.id}/status`)).status, 200);
  const id = await connect(limited, "strat_acme", { token: "another" });
  assert.equal((await limited.delete(`/credentials/${id}`)).status, 204);
  // The other keys of the account see what it made.
  assert.equal((await stage.acme.get(`/blueprint-runs/${allowed.body.id}/status`)).status, 200);
});

test("the projections have exactly the fields that the interface names", async () => {
  const created = await stage.acme.post("/credential-sessions", {
    strategy_id: "strat_acme",
    name: "a label",
  });
  assert.equal(created.status, 201);
  const fields = [
    "id",
    "status",
    "hosted_url",
    "return_url",
    "strategy_id",
    "credential_id",
    "expires_at",
    "completed_at",
    "created_at",
  ];
  assert.deepEqual(Object.keys(created.body).sort(), fields.toSorted());
  assert.deepEqual((await stage.acme.get(`/credential-sessions/${created.body.id}`)).body, created.body);
  const triggered = await stage.acme.post("/blueprints/with-login/trigger", {
    credential_id: stage.credential,
    data: "[]",
  });
  assert.deepEqual(Object.keys(triggered.body), ["id", "run_key", "status"]);
  const { body } = await stage.acme.waitForRun(triggered.body.id);
  assert.deepEqual(
    Object.keys(body).sort(),
    [
      "id",
      "run_key",
      "status",
      "progress_step",
      "created_at",
      "started_at",
      "ended_at",
      "error",
      "blueprint_id",
    ].sort(),
  );
  for (const time of [body.created_at, body.started_at, body.ended_at])
    assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.match(body.blueprint_id, /^bp_/);
});

test("no answer is to be read as anything but what it says it is: JSON, health and refusals included", async () => {
  for (const path of [
    "/healthz",
    "/readyz",
    "/api/v1/blueprints/none/schema",
    "/api/v1/nothing",
    "/nothing",
  ]) {
    const response = await fetch(new URL(path, stage.service.url));
    assert.equal(response.headers.get("x-content-type-options"), "nosniff", path);
    await response.arrayBuffer();
  }
});
