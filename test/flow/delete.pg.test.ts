import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, openCaller, type Caller } from "../caller.ts";
import { install } from "../service.ts";
import { historyOf, recordHistory } from "./run-history.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget, type Target } from "./target.ts";

const GONE = {
  code: "execution_failed",
  message: "The run did not complete. The operator's dashboard shows why.",
};
/** Runs under way stop within 10 s (`promised-times.pg.test.ts`), on a machine that does nothing else. */
const PATIENCE_MS = 60_000;

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let caller: Caller;

before(async () => {
  // Slow enough that a run is in the middle of its pages for a while.
  target = await startTarget(ledger, { delayMs: 900 });
  installation = await install();
  await installation.apply(...ledgerDocuments(target.url, { cache: "15m", concurrency: 1 }));
  await recordHistory(installation.database.db);
  caller = openCaller((await installation.serve()).url, await installation.createKey("acme"));
});

afterEach(() => target.reset());

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

const newCredential = async (): Promise<string> => await connect(caller, "strat_ledger", LEDGER_LOGIN);

async function trigger(credential: string): Promise<string> {
  const { status, body } = await caller.post("/blueprints/ledger/trigger", { credential_id: credential });
  assert.equal(status, 202);
  return body.id;
}

const rowsOf = async (table: string, column: string, credential: string): Promise<number> =>
  (await installation.database.db.query(`select 1 from ${table} where ${column} = $1`, [credential])).length;

/** Deletes the credential; the run fails, and from then on the target hears nothing more. Gives the projection. */
async function assertStopped(credential: string, run: string): Promise<any> {
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 204);
  const { body } = await caller.waitForRun(run, PATIENCE_MS);
  assert.equal(body.status, "failed");
  assert.deepEqual(body.error, GONE);
  const seen = target.requests.length;
  await sleep(1_200);
  assert.equal(target.requests.length, seen, "a request after the run had failed");
  return body;
}

test("a deleted credential is gone: 204 and empty, then 404, and a trigger with it is a 422", async () => {
  const credential = await newCredential();
  const deleted = await caller.delete(`/credentials/${credential}`);
  assert.equal(deleted.status, 204);
  assert.equal(deleted.text, "");
  const again = await caller.delete(`/credentials/${credential}`);
  assert.equal(again.status, 404);
  assert.equal(again.body.error.type, "not_found");
  for (const field of ["credential_id", "credential_ids"]) {
    const refused = await caller.post("/blueprints/ledger/trigger", { [field]: credential });
    assert.equal(refused.status, 422);
    assert.equal(refused.body.error.type, "validation_error");
    assert.deepEqual(
      refused.body.error.details.map((detail: any) => [detail.field, detail.code]),
      [[field, "invalid_input_data"]],
    );
  }
  assert.equal(await rowsOf("run_credential", "credential_id", credential), 0, "no run was made");
  assert.equal(await rowsOf("credential", "id", credential), 0);
  // Spec, Credential session: the id is stable; the session tells it still.
  const [session] = await installation.database.db.query<{ id: string }>(
    "select id from credential_session where credential_id = $1",
    [credential],
  );
  assert.equal((await caller.get(`/credential-sessions/${session?.id}`)).body.credential_id, credential);
});

test("a run in the middle of its pages fails after the delete, and so does the one that waits for it", async () => {
  const credential = await newCredential();
  const hold = target.hold((request) => request.path === "/second");
  const running = await trigger(credential);
  // The strategy allows one run at a time: this one is queued.
  const waiting = await trigger(credential);
  await hold.reached;
  assert.equal(await rowsOf("login_session", "credential_id", credential), 1, "the login is cached");
  assert.equal((await caller.get(`/blueprint-runs/${waiting}/status`)).body.progress_step, "queued");
  hold.release();

  const stopped = await assertStopped(credential, running);
  assert.ok(
    target.requests.filter((request) => request.path === "/second").length < 4,
    "it was stopped in the middle",
  );
  assert.notEqual(stopped.started_at, null);
  const { body: failed } = await caller.get(`/blueprint-runs/${waiting}/status`);
  assert.equal(failed.status, "failed");
  assert.equal(failed.started_at, null);
  assert.deepEqual(failed.error, GONE);
  assert.deepEqual(await historyOf(installation.database.db, waiting), ["queued/queued", "failed/failed"]);
  assert.equal(
    target.requests.filter((request) => request.path === "/login").length,
    1,
    "the queued run never logged in",
  );
  for (const [table, column] of [
    ["credential", "id"],
    ["login_session", "credential_id"],
    ["totp_use", "credential_id"],
  ] as const) {
    assert.equal(await rowsOf(table, column, credential), 0, table);
  }
});

test("a run whose request the target does not answer fails after the delete all the same", async () => {
  const credential = await newCredential();
  const hold = target.hold((request) => request.path === "/first");
  const run = await trigger(credential);
  await hold.reached;
  await assertStopped(credential, run);
});

test("a delete while a run logs in fails the run before it has started, and caches no login", async () => {
  const credential = await newCredential();
  const hold = target.hold((request) => request.path === "/login");
  const run = await trigger(credential);
  await hold.reached;
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 204);
  hold.release();
  const { body } = await caller.waitForRun(run, PATIENCE_MS);
  assert.equal(body.status, "failed");
  assert.deepEqual(body.error, GONE);
  assert.equal(await rowsOf("login_session", "credential_id", credential), 0);
  const seen = target.requests.length;
  await sleep(1_200);
  assert.equal(target.requests.length, seen);
});

test("a replayed delete is the first answer; another key finds the credential gone", async () => {
  const credential = await newCredential();
  const first = await caller.delete(`/credentials/${credential}`, {
    "idempotency-key": `disconnect ${credential}`,
  });
  const replay = await caller.delete(`/credentials/${credential}`, {
    "idempotency-key": `disconnect ${credential}`,
  });
  const other = await caller.delete(`/credentials/${credential}`, {
    "idempotency-key": `disconnect again ${credential}`,
  });
  assert.deepEqual([first.status, first.headers.get("idempotent-replay")], [204, null]);
  assert.deepEqual([replay.status, replay.headers.get("idempotent-replay"), replay.text], [204, "true", ""]);
  assert.equal(other.status, 404);
});
