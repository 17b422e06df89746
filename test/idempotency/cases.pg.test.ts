// docs/decisions/0010: rows 1 to 8, 20 to 26 and 28 of its table, through HTTP: when a key
// is recorded, replayed and free again. A test's name begins with its row; rows 9 to 19, 27 and 29 are in fingerprint.pg.test.ts.
import assert from "node:assert/strict";
import { connect as openSocket } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { purgeOldRuns } from "#actions/runs/purge-runs.ts";
import { openLocalStore } from "#blobs/local-store.ts";
import { deleteOutdatedKeys } from "#db/idempotency.ts";
import { openLog } from "#lib/log.ts";
import { hashIdempotencyKey } from "#domain/idempotency.ts";
import { openCaller, submitHostedForm, type ApiAnswer, type Caller } from "../caller.ts";
import type { Installation, RunningService } from "../service.ts";
import {
  assertFresh,
  assertReplay,
  assertReuse,
  holdKey,
  holdRuns,
  keyed,
  newKey,
  SESSION,
  storedKeys,
  TRIGGER,
} from "./exchange.ts";
import { serveIdle, moveHours, plantCredentials, runsNamed, sessionsNamed } from "./fixture.ts";

let installation: Installation & AsyncDisposable;
let service: RunningService;
let apiKey: string;
let caller: Caller;

before(async () => {
  ({ installation, service, apiKey, caller } = await serveIdle());
});
after(() => installation?.[Symbol.asyncDispose]());

const trigger = async (key: string, body: unknown = { a: "[]", run_name: key }): Promise<ApiAnswer> =>
  await caller.post(TRIGGER, body, keyed(key));

test("rows 1 and 2: the first answer carries no header; the second is the same bytes with Idempotent-Replay, for every mutating endpoint", async () => {
  const [credential = ""] = await plantCredentials(installation, 1);
  const requests: [number, (key: string) => Promise<ApiAnswer>][] = [
    [202, async (key) => await trigger(key)],
    [201, async (key) => await caller.post("/credential-sessions", { ...SESSION, name: key }, keyed(key))],
    [204, async (key) => await caller.delete(`/credentials/${credential}`, keyed(key))],
  ];
  for (const [status, send] of requests) {
    const key = newKey();
    const first = await send(key);
    assertFresh(first, status);
    const again = await send(key);
    assertReplay(again, first);
    assert.notEqual(again.headers.get("x-request-id"), first.headers.get("x-request-id"));
    assert.equal(
      (await runsNamed(installation, key)) + (await sessionsNamed(installation, key)),
      status === 204 ? 0 : 1,
    );
  }
});

test("row 3: a duplicate waits for the first, and replays it", async () => {
  const key = newKey();
  const held = await holdRuns(installation);
  const first = trigger(key);
  await held.waiting();
  const second = trigger(key);
  assert.equal(await Promise.race([second, sleep(100)]), undefined, "it waits");
  await held.release();
  assertFresh(await first, 202);
  assertReplay(await second, await first);
  assert.equal(await runsNamed(installation, key), 1);
});

test("rows 3 and 8: after 8 s of waiting it is 409 idempotency_key_in_use with Retry-After, also for one that waits for a waiting one", async () => {
  const [key, slow] = [newKey(), newKey()];
  const held = await holdKey(installation, key);
  const heldRuns = await holdRuns(installation);
  const began = performance.now();
  const first = trigger(key);
  // Its key is free, it waits for something else: no duplicate of it is under way.
  const alone = trigger(slow);
  await sleep(1_000);
  const second = trigger(key);
  for (const answer of await Promise.all([first, second])) {
    assertFresh(answer, 409);
    assert.equal(answer.body.error.type, "conflict");
    assert.equal(answer.body.error.details[0].code, "idempotency_key_in_use");
    assert.equal(answer.headers.get("retry-after"), "1");
  }
  const waited = performance.now() - began;
  // While the key is still held; no longer than that: `flow/promised-times.pg.test.ts`.
  assert.ok(waited > 7_900, `it took ${waited} ms`);
  assertFresh(await alone, 503);
  await held.release();
  await heldRuns.release();
  for (const again of [key, slow]) {
    assertFresh(await trigger(again), 202);
    assert.equal(await runsNamed(installation, again), 1);
  }
});

test("row 4: with another body, it waits for the first: 409 idempotency_key_reuse when that one commits", async () => {
  const key = newKey();
  const held = await holdRuns(installation);
  const first = trigger(key);
  await held.waiting();
  const second = trigger(key, { a: "[1]", run_name: `${key}-second` });
  assert.equal(await Promise.race([second, sleep(100)]), undefined, "it waits");
  await held.release();
  assertFresh(await first, 202);
  assertReuse(await second);
  assert.equal(await runsNamed(installation, `${key}-second`), 0);
});

test("rows 4 and 8: with another body, it is processed as the first when that one is rolled back; a 5xx is not stored", async () => {
  const key = newKey();
  const held = await holdRuns(installation);
  const first = trigger(key);
  const pid = await held.waiting();
  const second = trigger(key, { a: "[1]", run_name: `${key}-second` });
  await sleep(50);
  await installation.database.db.query("select pg_terminate_backend($1)", [pid]);
  assert.equal((await first).status, 503);
  await held.release();
  assertFresh(await second, 202);
  assert.equal(await runsNamed(installation, key), 0);
  assertReplay(await trigger(key, { a: "[1]", run_name: `${key}-second` }), await second);
});

for (const [row, point, rows] of [
  ["row 5: killed before COMMIT", "idempotency.before_commit", 0],
  ["row 6: killed after COMMIT", "idempotency.after_commit", 1],
] as const) {
  test(`${row}, the effect and the record are there ${rows ? "both, and the retry replays" : "neither, and the retry executes"}`, async () => {
    const key = newKey();
    const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: `${point}=kill` }, ["api"]);
    await assert.rejects(openCaller(dying.url, apiKey).post(TRIGGER, { a: "[]", run_name: key }, keyed(key)));
    assert.equal(await dying.end("SIGKILL"), null);
    assert.equal(dying.child.signalCode, "SIGKILL");
    assert.equal(await runsNamed(installation, key), rows);
    assert.equal(await storedKeys(installation, key), rows);
    const retry = await trigger(key);
    assert.equal(retry.status, 202);
    assert.equal(retry.headers.get("idempotent-replay"), rows ? "true" : null);
    assert.equal(await runsNamed(installation, key), 1);
  });
}

test("row 7: a refused request stores nothing; the key is free for the corrected one", async () => {
  const limited = openCaller(service.url, await installation.createKey("acme", { blueprints: ["other"] }));
  const [missing = ""] = await plantCredentials(installation, 1);
  await caller.delete(`/credentials/${missing}`);
  const refused: [number, (key: string) => Promise<ApiAnswer>][] = [
    [400, async (key) => await caller.post("/blueprints/other/trigger", {}, keyed(key))],
    [403, async (key) => await limited.post(TRIGGER, {}, keyed(key))],
    [404, async (key) => await caller.delete(`/credentials/${missing}`, keyed(key))],
    [404, async (key) => await caller.post("/blueprints/absent/trigger", {}, keyed(key))],
    [422, async (key) => await trigger(key, { credential_id: missing })],
    [422, async (key) => await trigger(key, "{")],
    [
      422,
      async (key) => await caller.post("/credential-sessions", { strategy_id: "strat_absent" }, keyed(key)),
    ],
  ];
  for (const [status, send] of refused) {
    const key = newKey();
    assertFresh(await send(key), status);
    assertFresh(await send(key), status);
    assert.equal(await storedKeys(installation, key), 0);
    assertFresh(await trigger(key), 202);
  }
  const key = newKey();
  await trigger(key);
  assertReuse(await trigger(key, {}));
  assertReplay(await trigger(key), await trigger(key));
});

test("row 8: 401, 413, 415 and 431 store nothing", async () => {
  const stranger = openCaller(service.url, `${apiKey.slice(0, -1)}${apiKey.endsWith("0") ? "1" : "0"}`);
  const refused: [number, (key: string) => Promise<{ status: number }>][] = [
    [401, async (key) => await stranger.post(TRIGGER, {}, keyed(key))],
    [
      413,
      async (key) =>
        await caller.post("/credential-sessions", { ...SESSION, pad: "x".repeat(1_100_000) }, keyed(key)),
    ],
    [415, async (key) => await caller.post(TRIGGER, "{}", { ...keyed(key), "content-type": "text/plain" })],
    [431, async (key) => await caller.post(TRIGGER, {}, { ...keyed(key), "x-pad": "x".repeat(40_000) })],
  ];
  for (const [status, send] of refused) {
    const key = newKey();
    assert.equal((await send(key)).status, status);
    assert.equal(await storedKeys(installation, key), 0);
    assertFresh(await trigger(key), 202);
  }
});

test("row 8: 429 stores nothing, and the key is free when the time is over", async () => {
  const tight = openCaller(service.url, await installation.createKey("tight"));
  const send = async (key: string): Promise<ApiAnswer> =>
    await tight.post(TRIGGER, { a: "[]", run_name: key }, keyed(key));
  let key: string;
  let answer: ApiAnswer;
  // The burst is one: until the other of two was first.
  do {
    key = newKey();
    [, answer] = await Promise.all([tight.post(TRIGGER, {}), send(key)]);
  } while (answer.status === 202);
  assertFresh(answer, 429);
  assert.equal(answer.body.error.type, "rate_limit_exceeded");
  assert.equal(await storedKeys(installation, key), 0);
  assert.equal(await runsNamed(installation, key), 0);
  await sleep(1_100 * Number(answer.headers.get("retry-after")));
  assertFresh(await send(key), 202);
  assert.equal(await runsNamed(installation, key), 1);
});

test("row 20: after the credential's deletion the trigger and the DELETE replay; with a new key they are 422 and 404", async () => {
  const [credential = ""] = await plantCredentials(installation, 1);
  const [runKey, deleteKey] = [newKey(), newKey()];
  const start = async (key: string): Promise<ApiAnswer> =>
    await caller.post("/blueprints/secured/trigger", { credential_id: credential }, keyed(key));
  const run = await start(runKey);
  assertFresh(run, 202);
  const deleted = await caller.delete(`/credentials/${credential}`, keyed(deleteKey));
  assertFresh(deleted, 204);
  assertReplay(await start(runKey), run);
  assertReplay(await caller.delete(`/credentials/${credential}`, keyed(deleteKey)), deleted);
  assertFresh(await start(newKey()), 422);
  assertFresh(await caller.delete(`/credentials/${credential}`, keyed(newKey())), 404);
});

test("row 21: a session's creation replays as it was, also after its completion; its token is not in the database", async () => {
  const key = newKey();
  const create = async (): Promise<ApiAnswer> =>
    await caller.post("/credential-sessions", SESSION, keyed(key));
  const first = await create();
  assert.ok((await submitHostedForm(first.body.hosted_url, { token: "secret-token" })).ok);
  assert.equal((await caller.get(`/credential-sessions/${first.body.id}`)).body.status, "completed");
  const again = await create();
  assertReplay(again, first);
  assert.equal(again.body.status, "pending");
  const token: string = first.body.hosted_url.split("/").at(-1);
  const [stored] = await installation.database.db.query<{ body: Buffer }>(
    "select body from idempotency_key where key_hash = $1",
    [hashIdempotencyKey(key)],
  );
  assert.ok(stored && !stored.body.includes(token) && stored.body.includes(first.body.id));
  const page = await (await fetch(first.body.hosted_url)).text();
  assert.ok(!page.includes("<form"), "the old form is closed");
});

test("row 22: after the run's purge the trigger replays its 202", async () => {
  const { db } = installation.database;
  const key = newKey();
  const first = await trigger(key);
  await db.query(
    `update run set status = 'failed', progress_step = 'failed', error_kind = 'timeout', started_at = app_now() - interval '40 days',
       created_at = app_now() - interval '40 days', ended_at = app_now() - interval '39 days' where id = $1`,
    [first.body.id],
  );
  const blobs = openLocalStore(join(installation.dataFolder, "objects"));
  await purgeOldRuns({ db, blobs, log: openLog({ level: "silent", format: "json" }) });
  assert.equal(
    (await db.query("select 1 from run where id = $1 and purged_at is not null", [first.body.id])).length,
    1,
  );
  assertReplay(await trigger(key), first);
});

test("row 24: another key of the account replays, and is 403 when it may not use that Blueprint", async () => {
  const key = newKey();
  const first = await trigger(key);
  const body = { a: "[]", run_name: key };
  const second = openCaller(service.url, await installation.createKey("acme", { blueprints: ["plain"] }));
  assertReplay(await second.post(TRIGGER, body, keyed(key)), first);
  const limited = openCaller(service.url, await installation.createKey("acme", { blueprints: ["other"] }));
  const refused = await limited.post(TRIGGER, body, keyed(key));
  assertFresh(refused, 403);
  assert.equal(refused.body.error.type, "authorization_error");
});

test("row 25: another account's same key is independent", async () => {
  const key = newKey();
  const first = await trigger(key);
  const stranger = openCaller(service.url, await installation.createKey("globex"));
  const theirs = await stranger.post(TRIGGER, { a: "[]", run_name: key }, keyed(key));
  assertFresh(theirs, 202);
  assert.notEqual(theirs.body.id, first.body.id);
  assertFresh(await stranger.post(TRIGGER, { a: "[]" }, keyed(newKey())), 202);
  assert.equal(await runsNamed(installation, key), 2);
});

test("row 26: on GET the header is ignored, whatever it holds", async () => {
  const key = newKey();
  const { body } = await trigger(key);
  for (const value of [key, "", "x".repeat(300)]) {
    assertFresh(await caller.get(`/blueprint-runs/${body.id}/status`), 200);
    const response = await fetch(`${service.url}/api/v1/blueprint-runs/${body.id}/status`, {
      headers: { authorization: `Bearer ${apiKey}`, ...keyed(value) },
    });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("idempotent-replay"), null);
  }
});

/** A trigger written by hand on a socket, all of it or all but its body's last byte, and the socket destroyed. */
async function disconnect(key: string, whole: boolean, until: () => Promise<unknown>): Promise<void> {
  const { hostname, port } = new URL(service.url);
  const socket = openSocket(Number(port), hostname);
  const body = JSON.stringify({ run_name: key });
  socket.write(
    `POST /api/v1${TRIGGER} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${apiKey}\r\nContent-Type: application/json\r\n` +
      `Idempotency-Key: ${key}\r\nContent-Length: ${body.length}\r\n\r\n${whole ? body : body.slice(0, -1)}`,
  );
  await until();
  socket.destroy();
}

test("row 28: a client that goes before its body is complete changes nothing; after that, the work goes on to COMMIT", async () => {
  const [early, late] = [newKey(), newKey()];
  await disconnect(early, false, async () => await sleep(100));
  const held = await holdRuns(installation);
  await disconnect(late, true, held.waiting);
  await sleep(50);
  await held.release();
  while ((await runsNamed(installation, late)) === 0) await sleep(10);
  assert.equal(await runsNamed(installation, early), 0);
  assert.equal(await storedKeys(installation, early), 0);
  const answer = await trigger(late, { run_name: late });
  assert.equal(answer.headers.get("idempotent-replay"), "true");
});

// Last: it moves the clock of all that follows.
test("row 23: 24 hours by the database's clock, decided at look-up; at the limit a new operation replaces the row, whether or not the sweeper ran", async () => {
  const { db } = installation.database;
  for (const sweep of [false, true]) {
    const key = newKey();
    const first = await trigger(key);
    await moveHours(installation, 23.99);
    if (sweep) await deleteOutdatedKeys(db, 1_000);
    assertReplay(await trigger(key), first);
    await moveHours(installation, 24);
    if (sweep) await deleteOutdatedKeys(db, 1_000);
    const different = { run_name: `${key} again` };
    const second = await trigger(key, different);
    assertFresh(second, 202);
    assert.notEqual(second.body.id, first.body.id);
    await moveHours(installation, 47.99);
    assertReplay(await trigger(key, different), second);
    assert.equal(await storedKeys(installation, key), 1);
    await moveHours(installation, 0);
  }
});
