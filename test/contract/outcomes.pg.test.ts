import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openApiDocument } from "../../scripts/generate/openapi-document.ts";
import { openCaller, submitHostedForm, type ApiAnswer, type Caller } from "../caller.ts";
import { install } from "../service.ts";
import { BLUEPRINT, DOCUMENTS, STRATEGY } from "./documents.ts";
import { openDatabaseProxy } from "./database-proxy.ts";
import {
  seeCancelAndEvents,
  seeEmbeddedSession,
  seeIgnoredKeys,
  seeScopes,
  seeTriggerSchema,
  type Scene,
} from "./extension-outcomes.ts";
import { everyOperation, TRIGGER } from "./every-operation.ts";
import { whileKeyIsHeld } from "./held-key.ts";
import { expectContract } from "./expect-contract.ts";
import { check, checkRefusal, seen } from "./seen.ts";
import { keyedOperations, sendAbsolute } from "./raw-requests.ts";

const MIB = 1_048_576;

let installation: Awaited<ReturnType<typeof install>>;
let url: string;
let callerKey: string;
let caller: Caller;
let stranger: Caller;
let limited: Caller;
let tester: Caller;
let credential: string;
let inUse: Promise<ApiAnswer>;

before(async () => {
  installation = await install();
  await installation.apply(...DOCUMENTS);
  ({ url } = await installation.serve());
  callerKey = await installation.createKey("acme");
  caller = openCaller(url, callerKey);
  stranger = openCaller(url, await installation.createKey("other"));
  limited = openCaller(url, await installation.createKey("acme", { blueprints: ["strict-check"] }));
  tester = openCaller(url, await installation.createKey("acme", { isTest: true }));
  // It takes the eight seconds that a duplicate waits: the other tests run meanwhile.
  inUse = whileKeyIsHeld(
    installation.database.db,
    "held-key",
    async () => await trigger(TRIGGER, { "idempotency-key": "held-key" }),
  );
});

after(async () => {
  await inUse?.catch(() => undefined);
  await installation?.[Symbol.asyncDispose]();
});

const trigger = async (
  body: unknown,
  headers: Record<string, string> = {},
  as: Caller = caller,
): Promise<ApiAnswer> => await as.post(`/blueprints/${BLUEPRINT}/trigger`, body, headers);

test("a key for runs alone is 403 for sessions and credentials", async () => await seeScopes(scene()));

test("a session: created, replayed, completed, expired, refused", async () => {
  const body = { strategy_id: STRATEGY, name: "Note", return_url: "https://app.example.com/done?x=1" };
  const key = { "idempotency-key": "session-1" };
  const first = await caller.post("/credential-sessions", body, key);
  const session = check("createCredentialSession", 201, first);
  assert.equal(session.status, "pending");
  const replay = await caller.post("/credential-sessions", body, key);
  check("createCredentialSession", 201, replay);
  assert.equal(replay.text, first.text);
  assert.equal(replay.headers.get("idempotent-replay"), "true");
  assert.equal(first.headers.get("idempotent-replay"), null);

  const path = `/credential-sessions/${session.id}`;
  assert.equal(check("readCredentialSession", 200, await caller.get(path)).hosted_url, session.hosted_url);
  assert.equal((await submitHostedForm(session.hosted_url, { note: "n" })).status, 303);
  const done = check("readCredentialSession", 200, await caller.get(path));
  assert.equal(done.status, "completed");
  credential = done.credential_id;

  const other = check(
    "createCredentialSession",
    201,
    await caller.post("/credential-sessions", { strategy_id: STRATEGY }),
  );
  assert.equal(other.return_url, null);
  await installation.database.db.query(
    "update credential_session set expires_at = created_at where id = $1",
    [other.id],
  );
  const expired = check("readCredentialSession", 200, await caller.get(`/credential-sessions/${other.id}`));
  assert.equal(expired.status, "expired");
  assert.equal(expired.hosted_url, null);
});

test("a session's refusals", async () => {
  const post = async (body: unknown, headers?: Record<string, string>): Promise<ApiAnswer> =>
    await caller.post("/credential-sessions", body, headers);
  const refused = async (
    status: number,
    details: readonly string[],
    ...call: Parameters<typeof post>
  ): Promise<void> => checkRefusal("createCredentialSession", status, await post(...call), details);
  await refused(
    409,
    ["Idempotency-Key idempotency_key_reuse"],
    { strategy_id: STRATEGY },
    { "idempotency-key": "session-1" },
  );
  await refused(413, [], { strategy_id: "x".repeat(MIB) });
  await refused(413, [], `[${"0,".repeat(250_001)}0]`);
  await refused(415, [], "strategy_id=x", { "content-type": "application/x-www-form-urlencoded" });
  await refused(415, [], "{}", { "content-type": "application/json; charset=utf-16" });
  await refused(
    422,
    ["Idempotency-Key invalid_input_data"],
    { strategy_id: STRATEGY },
    { "idempotency-key": " " },
  );
  await refused(422, ["Idempotency-Key invalid_input_data"], {}, { "idempotency-key": "x".repeat(256) });
  await refused(422, ["strategy_id invalid_input_data"], {});
  await refused(422, ["strategy_id invalid_input_data"], { strategy_id: "strat_none" });
  await refused(422, ["strategy_id invalid_input_data", "name invalid_input_data"], {
    strategy_id: 1,
    name: 2,
  });
  await refused(422, ["return_url invalid_input_data"], {
    strategy_id: STRATEGY,
    return_url: "https://evil.example/",
  });
  await refused(422, ["name invalid_input_data"], { strategy_id: STRATEGY, name: "a\u0000b" });
  await refused(422, ["null invalid_input_data"], "[]");
  await refused(422, ["null invalid_input_data"], "{");
  await refused(422, ["null invalid_input_data"], "[".repeat(65) + "]".repeat(65));
  const missing = "/credential-sessions/sess_nothing";
  checkRefusal("readCredentialSession", 404, await caller.get(missing));
  const { body: own } = await post({ strategy_id: STRATEGY });
  checkRefusal("readCredentialSession", 404, await stranger.get(`/credential-sessions/${own.id}`));
});

test("a run in JSON and multipart: accepted, replayed, its status and both forms of its results", async () => {
  const body = { ...TRIGGER, credential_id: credential, run_name: "A run", unknown: 1 };
  const first = await trigger(body, { "idempotency-key": "run-1" });
  const run = check("triggerBlueprint", 202, first);
  const replay = await trigger(body, { "idempotency-key": "run-1" });
  check("triggerBlueprint", 202, replay);
  assert.equal(replay.text, first.text);
  assert.equal(replay.headers.get("idempotent-replay"), "true");

  const form = new FormData();
  form.set("credential_id", credential);
  form.set("purchase_order", "PO-8");
  form.set("order_file", new Blob(["sku,amount\nC-3,5\n"], { type: "text/csv" }), "order.csv");
  const uploaded = check("triggerBlueprint", 202, await trigger(form));

  for (const { id, run_key: key } of [run, uploaded]) {
    await caller.waitForRun(id);
    for (const reference of [id, key]) {
      assert.equal(
        check("readRunStatus", 200, await caller.get(`/blueprint-runs/${reference}/status`)).status,
        "completed",
      );
      const results = `/blueprint-runs/${reference}/results`;
      const direct = check("readRunResults", 200, await caller.get(`${results}?deliveryMethod=direct`));
      assert.equal(direct.dataDeliveryMethod, "direct");
      const presigned = check("readRunResults", 200, await caller.get(results));
      assert.equal(presigned.dataDeliveryMethod, "presigned_url");
    }
  }
  const { body: checked } = await caller.get(`/blueprint-runs/${run.id}/results?deliveryMethod=direct`);
  assert.deepEqual(
    checked.results.lines.records.map((record: any) => [record.isValid, record.errors.length]),
    [
      [true, 0],
      [false, 1],
    ],
  );
});

test("a run that waits, and one that fails, in the projection", async () => {
  await installation.database.db.transaction(async (tx) => {
    // While the account's row is locked nothing is admitted: the run can be seen waiting.
    await tx.query("select 1 from account for no key update");
    const { body } = await trigger({ ...TRIGGER, credential_id: credential });
    assert.equal(
      check("readRunStatus", 200, await caller.get(`/blueprint-runs/${body.id}/status`)).status,
      "queued",
    );
    checkRefusal("readRunResults", 409, await caller.get(`/blueprint-runs/${body.id}/results`));
  });
  const { body } = await caller.post("/blueprints/strict-check/trigger", { order_file: "amount\n-1\n" });
  await caller.waitForRun(body.id);
  const failed = check("readRunStatus", 200, await caller.get(`/blueprint-runs/${body.id}/status`));
  assert.equal(failed.status, "failed");
  assert.equal(failed.error.code, "execution_failed");
  checkRefusal("readRunResults", 409, await caller.get(`/blueprint-runs/${body.id}/results`));
});

test("a trigger's refusals", async () => {
  const good = { ...TRIGGER, credential_id: credential };
  const refused = async (
    status: number,
    details: readonly string[],
    ...call: Parameters<typeof trigger>
  ): Promise<void> => checkRefusal("triggerBlueprint", status, await trigger(...call), details);
  await refused(400, ["purchase_order invalid_input_data"], { credential_id: credential });
  await refused(400, ["purchase_order invalid_input_data"], undefined);
  await refused(403, [], good, {}, limited);
  await refused(404, [], good, {}, stranger);
  checkRefusal("triggerBlueprint", 404, await caller.post("/blueprints/nothing/trigger", good));
  await refused(409, ["Idempotency-Key idempotency_key_reuse"], good, { "idempotency-key": "run-1" });
  await refused(413, [], { ...good, period: "x".repeat(5 * MIB) });
  await refused(415, [], "a", { "content-type": "text/plain" });
  await refused(415, [], "a", { "content-type": "multipart/form-data" });
  await refused(422, ["Idempotency-Key invalid_input_data"], good, { "idempotency-key": "" });
  await refused(422, ["null invalid_input_data"], "7");
  await refused(422, ["credential_id invalid_input_data"], TRIGGER);
  await refused(422, ["credential_id invalid_input_data"], {
    ...TRIGGER,
    credential_id: "cred_0000000000000000000000000000",
  });
  await refused(422, ["credential_ids invalid_input_data"], { ...TRIGGER, credential_ids: ["nothing"] });
  await refused(422, ["period.from invalid_input_data"], { ...good, period: { from: 7 } });
  await refused(422, ["run_name invalid_input_data"], { ...good, run_name: "x".repeat(256) });
  const twice = new FormData();
  for (const value of ["a", "b"]) twice.append("purchase_order", value);
  await refused(422, ["purchase_order invalid_input_data"], twice);
  const misplaced = new FormData();
  misplaced.set("purchase_order", new Blob(["x"]), "x.txt");
  await refused(422, ["purchase_order invalid_input_data"], misplaced);
});

test("a run's refusals: foreign, forbidden, a wrong query, purged", async () => {
  const { body: run } = await trigger({ ...TRIGGER, credential_id: credential });
  await caller.waitForRun(run.id);
  for (const [operation, name] of [
    ["readRunStatus", "status"],
    ["readRunResults", "results"],
  ] as const) {
    checkRefusal(operation, 403, await limited.get(`/blueprint-runs/${run.id}/${name}`));
    for (const reference of [run.id, run.run_key]) {
      checkRefusal(operation, 404, await stranger.get(`/blueprint-runs/${reference}/${name}`));
    }
    checkRefusal(operation, 404, await caller.get(`/blueprint-runs/nothing/${name}`));
  }
  for (const query of ["deliveryMethod=both", "deliveryMethod=direct&deliveryMethod=direct"]) {
    checkRefusal("readRunResults", 422, await caller.get(`/blueprint-runs/${run.id}/results?${query}`), [
      "deliveryMethod invalid_input_data",
    ]);
  }
  await installation.database.db.query("update run set purged_at = app_now() where id = $1", [run.id]);
  checkRefusal("readRunResults", 400, await caller.get(`/blueprint-runs/${run.id}/results`), [
    "null run_data_purged",
  ]);
  check("readRunStatus", 200, await caller.get(`/blueprint-runs/${run.id}/status`));
});

test("a credential: deleted, replayed, gone, refused", async () => {
  const { body: session } = await caller.post("/credential-sessions", { strategy_id: STRATEGY });
  await submitHostedForm(session.hosted_url, { note: "n" });
  const { body: done } = await caller.get(`/credential-sessions/${session.id}`);
  const path = `/credentials/${done.credential_id}`;
  const key = { "idempotency-key": "delete-1" };
  checkRefusal("deleteCredential", 404, await stranger.delete(path));
  checkRefusal("deleteCredential", 422, await caller.delete(path, { "idempotency-key": "x".repeat(256) }), [
    "Idempotency-Key invalid_input_data",
  ]);
  check("deleteCredential", 204, await caller.delete(path, key));
  const replay = await caller.delete(path, key);
  check("deleteCredential", 204, replay);
  assert.equal(replay.headers.get("idempotent-replay"), "true");
  checkRefusal("deleteCredential", 404, await caller.delete(path));
  checkRefusal("deleteCredential", 409, await caller.delete(`/credentials/${credential}`, key), [
    "Idempotency-Key idempotency_key_reuse",
  ]);
  // docs/decisions/0024: it stays completed and keeps its credential's id.
  assert.equal(
    check("readCredentialSession", 200, await caller.get(`/credential-sessions/${session.id}`)).status,
    "completed",
  );
});

test("a run is cancelled, once; its events; and their refusals", async () =>
  await seeCancelAndEvents(scene()));
test("an embedded session: created, replayed, read, refused", async () => await seeEmbeddedSession(scene()));
test("the schema of a trigger, and its refusals", async () => await seeTriggerSchema(scene()));
test("the keys that a request ignored, for a caller that asks", async () => await seeIgnoredKeys(scene()));

const scene = (): Scene => ({
  db: installation.database.db,
  url,
  callerKey,
  caller,
  stranger,
  limited,
  tester,
  trigger: async (body, headers) =>
    await trigger({ ...TRIGGER, credential_id: credential, ...body }, headers),
});

/** A request of every operation; none of them may change anything, because all are refused. */
test("401 on every operation, and on unknown paths", async () => {
  const nobody = openCaller(url, "lk_none");
  for (const [operation, answer] of await everyOperation(nobody)) checkRefusal(operation, 401, answer);
  assert.equal((await nobody.get("/nothing")).status, 401);
});

test("431 on every operation when the headers are too large", async () => {
  const headers = { "x-large": "x".repeat(20_000) };
  for (const { method, path, operation } of keyedOperations()) {
    const address = `${url}/api/v1${path.replaceAll(/[{}]/g, "")}`;
    const answer = await fetch(address, { method: method.toUpperCase(), headers });
    const { status, headers: got } = answer;
    checkRefusal(operation, 431, { status, headers: got, text: await answer.text(), body: undefined });
  }
});

test("400 on every operation for what is no request of HTTP for us", async () => {
  for (const { method, path, operation } of keyedOperations()) {
    const answer = await sendAbsolute(url, method.toUpperCase(), path.replaceAll(/[{}]/g, ""));
    assert.equal(answer.status, 400);
    expectContract(operation, answer);
    seen.add(`${operation} default`);
  }
});

test("429 on every operation for an account that has used its allowance, and what is left before", async () => {
  const hasty = openCaller(url, await installation.createKey("hasty"));
  const polled = new Set([
    "readCredentialSession",
    "readEmbeddedCredentialSession",
    "readRunStatus",
    "watchRun",
    "watchEvents",
  ]);
  for (let round = 0; round < 30; round++) {
    for (const [operation, answer] of await everyOperation(hasty)) {
      expectContract(operation, answer);
      const { status, headers } = answer;
      if (status === 429) seen.add(`${operation} 429`);
      assert.match(
        headers.get("ratelimit") ?? "",
        polled.has(operation) ? /^"polls"/ : /^"calls"/,
        `${operation} ${status}`,
      );
    }
  }
});

test("500 on every operation when something breaks, without a word of what", async () => {
  const { db } = installation.database;
  await db.query("alter table api_key rename to api_key_away");
  try {
    for (const [operation, answer] of await everyOperation(caller)) {
      checkRefusal(operation, 500, answer);
      assert.doesNotMatch(answer.text, /api_key|relation|42P01/);
    }
  } finally {
    await db.query("alter table api_key_away rename to api_key");
  }
});

test("503 on every operation while the database is away, and what the health checks say", async () => {
  const proxy = await openDatabaseProxy(installation.database.connectionString);
  const service = await installation.serve({ DATABASE_URL: proxy.connectionString }, ["api"]);
  const orphan = openCaller(service.url, await installation.createKey("acme"));
  const health = async (path: string): Promise<ApiAnswer> => {
    const response = await fetch(`${service.url}${path}`);
    const { status, headers } = response;
    return { status, headers, text: await response.text(), body: undefined };
  };
  check("readLiveness", 200, await health("/healthz"));
  check("readReadiness", 200, await health("/readyz"));
  await proxy.close();
  check("readLiveness", 200, await health("/healthz"));
  check("readReadiness", 503, await health("/readyz"));
  for (const [operation, answer] of await everyOperation(orphan)) checkRefusal(operation, 503, answer);
  await service.end();
});

test("409 for a key whose first request is still under way after eight seconds", async () => {
  const answer = await inUse;
  checkRefusal("triggerBlueprint", 409, answer, ["Idempotency-Key idempotency_key_in_use"]);
  assert.equal(answer.headers.get("retry-after"), "1");
});

test("every documented outcome of every operation was seen", () => {
  const documented = Object.values(openApiDocument().paths).flatMap((item) =>
    [item.get, item.post, item.put, item.delete].flatMap((operation) =>
      Object.keys(operation?.responses ?? {}).map((status) => `${operation?.operationId} ${status}`),
    ),
  );
  // An embedded PostgreSQL that can't be started again: test/db/embedded-watch.pg.test.ts.
  const elsewhere = ["readLiveness 503"];
  assert.deepEqual(documented.toSorted(), [...seen, ...elsewhere].toSorted());
});
