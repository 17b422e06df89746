// docs/decisions/0020: tokens at run time. One refresher per credential, kept before it is used.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { connect } from "../caller.ts";
import { assertInvariants } from "../invariants.ts";
import { openOAuthBench, itemsBlueprint, type OAuthBench } from "./oauth-setup.ts";
import { CLIENT } from "./provider.ts";

const RUNS = 50;
/** Twelve requests, four at once. */
const MANY = `blueprint: many
account: acme
credentials: { it: { strategy: strat_northwind } }
nodes:
  - { id: numbers, type: input, refKey: numbers, accepts: json, default: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] }
  - { id: each, type: parse, from: numbers, format: json, records: "$.{ 'n': $ }" }
  - { id: read, type: http, credential: it, for_each: each, concurrency: 4, request: { url: /api/items }, records: $ }
  - { id: out, type: output, refKey: out, from: read }`;
let bench: OAuthBench;

before(async () => {
  bench = await openOAuthBench((provider) => [
    `strategy: strat_machine
account: acme
hosts: ["${provider.api}"]
login:
  type: oauth2
  grant: client_credentials
  issuer: ${provider.issuer}
  client_id: ${CLIENT.id}
  client_secret: { secret: NORTHWIND }`,
    `strategy: strat_own_client
account: acme
hosts: ["${provider.api}"]
fields: [{ key: id, type: text }, { key: secret, type: password }]
login:
  type: oauth2
  grant: client_credentials
  issuer: ${provider.issuer}
  client_id: "{{ $credential.id }}"
  client_secret: "{{ $credential.secret }}"`,
    itemsBlueprint("machine", "strat_machine"),
    itemsBlueprint("own-client", "strat_own_client"),
    MANY,
  ]);
});
afterEach(async () => await assertInvariants(bench.installation));
after(() => bench?.[Symbol.asyncDispose]());

const refreshes = () => bench.provider.tokenRequests.filter(({ grant }) => grant === "refresh_token");
const trigger = async (id: string, blueprint = "items"): Promise<string> =>
  (await bench.caller.post(`/blueprints/${blueprint}/trigger`, { credential_id: id })).body.id;
const db = () => bench.installation.database.db;
const detailOf = async (runId: string) =>
  (await db().query<{ detail: string }>("select error_detail as detail from run where id = $1", [runId]))[0]
    ?.detail;
const versionOf = async (id: string) =>
  (await db().query<{ version: number }>("select version from oauth_token where credential_id = $1", [id]))[0]
    ?.version;
/** Within the margin: such a token is not used. */
const SHORT = 59;
const LONG = 3_600;

/** A credential whose access token is over, and whose refresh token is good. */
async function connectExpired(): Promise<string> {
  bench.provider.lifetime.seconds = SHORT;
  const id = await bench.connect();
  bench.provider.lifetime.seconds = LONG;
  return id;
}

async function run(id: string, blueprint?: string) {
  const runId = await trigger(id, blueprint);
  const { body } = await bench.caller.waitForRun(runId, 60_000);
  return { id: runId, status: body.status as string, detail: await detailOf(runId) };
}

test("an access token is used until shortly before its time is over, then renewed with a rotated refresh token", async () => {
  const id = await bench.connect();
  assert.equal((await run(id)).status, "completed");
  assert.equal((await run(id)).status, "completed");
  assert.equal(refreshes().length, 0);
  assert.equal(await versionOf(id), 1);
  bench.provider.lifetime.seconds = SHORT;
  const other = await bench.connect();
  const before = bench.provider.used.at(-1);
  assert.equal((await run(other)).status, "completed");
  assert.notEqual(bench.provider.used.at(-1), before);
  assert.deepEqual([refreshes().length, await versionOf(other)], [1, 2]);
  // The next one goes on with the rotated one: the provider refuses one that was used.
  bench.provider.lifetime.seconds = LONG;
  assert.equal((await run(other)).status, "completed");
  assert.deepEqual([refreshes().length, await versionOf(other)], [2, 3]);
  assert.equal((await run(other)).status, "completed");
  assert.equal(refreshes().length, 2);
  assert.notEqual(refreshes()[0]?.parameters["refresh_token"], refreshes()[1]?.parameters["refresh_token"]);
});

test(`${RUNS} runs at once in two worker processes on one rotating refresh token: one refresh, no failure`, async (t) => {
  const second = await bench.installation.serveProcess({ LATCHKEY_WORKER_CONCURRENCY: "50" }, ["worker"]);
  t.after(async () => await second.end());
  const id = await connectExpired();
  const before = refreshes().length;
  const ids = await Promise.all(Array.from({ length: RUNS }, async () => await trigger(id)));
  const ended = await Promise.all(
    ids.map(async (each) => (await bench.caller.waitForRun(each, 90_000)).body.status),
  );
  assert.deepEqual(new Set(ended), new Set(["completed"]));
  assert.equal(refreshes().length - before, 1);
});

test("an access token that the target forgets in the middle of a run is renewed once, and nothing is lost", async () => {
  const id = await bench.connect();
  const before = refreshes().length;
  const started = await run(id, "many");
  assert.equal(started.status, "completed");
  bench.provider.forgotten.add(bench.provider.used.at(-1) ?? "");
  const used = bench.provider.used.length;
  // Twelve requests, four at once: all are refused at first, and one of them renews.
  assert.equal((await run(id, "many")).status, "completed");
  assert.equal(bench.provider.used.length - used, 12);
  assert.equal(refreshes().length - before, 1);
  assert.equal(await versionOf(id), 2);
});

test("a target that takes no token at all is not asked for one again and again", async (t) => {
  const id = await bench.connect();
  const before = refreshes().length;
  bench.provider.forgotten.add("*");
  t.after(() => bench.provider.forgotten.delete("*"));
  const ended = await run(id, "many");
  assert.equal(ended.status, "failed");
  assert.match(String(ended.detail), /returned 401/);
  assert.equal(refreshes().length - before, 1);
});

test("a refresh token that is refused in the middle of a run fails the node, which says that the user must reconnect", async () => {
  const id = await bench.connect();
  assert.equal((await run(id)).status, "completed");
  const token = bench.provider.used.at(-1) ?? "";
  await bench.provider.takeBack(token);
  bench.provider.forgotten.add(token);
  const ended = await run(id);
  assert.equal(ended.status, "failed");
  assert.match(String(ended.detail), /^Node read: GET \/api\/items: .*reconnect needed/);
});

test("client_credentials: one token for all runs until it expires, with the operator's client or the end user's own", async () => {
  const asked = () =>
    bench.provider.tokenRequests.filter(({ grant }) => grant === "client_credentials").length;
  for (const [strategy, blueprint, values] of [
    ["strat_machine", "machine", {}],
    ["strat_own_client", "own-client", { id: CLIENT.id, secret: CLIENT.secret }],
  ] as const) {
    const before = asked();
    bench.provider.lifetime.seconds = SHORT;
    const id = await connect(bench.caller, strategy, values);
    assert.equal(asked(), before, "collected, not tested");
    assert.equal((await run(id, blueprint)).status, "completed");
    assert.equal(asked(), before + 1);
    bench.provider.lifetime.seconds = LONG;
    for (const _ of [1, 2, 3]) assert.equal((await run(id, blueprint)).status, "completed");
    assert.equal(asked(), before + 2);
  }
  const wrong = await connect(bench.caller, "strat_own_client", {
    id: CLIENT.id,
    secret: "wrong-secret-canary",
  });
  const failed = await run(wrong, "own-client");
  assert.equal(failed.status, "failed");
  assert.match(String(failed.detail), /rejects the client/);
  assert.ok(!String(failed.detail).includes("canary"));
});

test("the kept tokens open only as their own version of their own credential", async () => {
  const [one, two] = [await bench.connect(), await bench.connect()];
  const swap = async (sql: string) => {
    await db().query(sql, [one, two]);
    return await run(one);
  };
  const used = bench.provider.used.length;
  const moved = await swap(
    "update oauth_token set sealed = (select sealed from oauth_token where credential_id = $2) where credential_id = $1",
  );
  assert.equal(moved.status, "failed");
  await db().query("update oauth_token set version = 7 where credential_id = $1", [two]);
  assert.equal((await run(two)).status, "failed");
  assert.equal(bench.provider.used.length, used);
});

test("deleting a credential deletes its tokens", async () => {
  const id = await bench.connect();
  assert.equal(await versionOf(id), 1);
  assert.equal((await bench.caller.delete(`/credentials/${id}`)).status, 204);
  assert.equal(await versionOf(id), undefined);
});

test("killed between the exchange and keeping its result: the next login is refused, and the operator reads that the user must reconnect", async () => {
  const id = await connectExpired();
  await bench.service.end();
  const api = await bench.installation.serveProcess({}, ["api"]);
  const caller = bench.callerOf(api);
  const dying = await bench.installation.serveProcess({ LATCHKEY_FAILPOINTS: "oauth.before_keep=kill" }, [
    "worker",
  ]);
  const died = new Promise((resolve) => dying.child.once("exit", (_code, signal) => resolve(signal)));
  const { body } = await caller.post("/blueprints/items/trigger", { credential_id: id });
  assert.equal(await died, "SIGKILL");
  assert.equal(await versionOf(id), 1);
  assert.equal(refreshes().at(-1)?.ok, true);
  const next = await bench.installation.serveProcess({}, ["worker"]);
  const { body: ended } = await caller.waitForRun(body.id, 60_000);
  assert.equal(ended.status, "failed");
  assert.deepEqual(ended.error.code, "execution_failed");
  assert.match(
    String(await detailOf(body.id)),
    /reconnect needed: the target rejects the refresh token \(invalid_grant\)/,
  );
  assert.equal(refreshes().at(-1)?.error, "invalid_grant");
  await next.end();
  await api.end();
});
