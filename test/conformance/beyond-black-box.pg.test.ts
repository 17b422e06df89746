/** What `conformance/not-proven.ts` lists: the sentences that need the clock, the database or a fault to be proven. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { moveClock, REAL_TIME, setClock } from "../clock.ts";
import { connect, openCaller, submitHostedForm, type ApiAnswer, type Caller } from "../caller.ts";
import { install, type RunningService } from "../service.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const STRATEGY = "strat_plain";
const TRIGGER = "/blueprints/rows/trigger";
const ROWS = '[{"name":"first"},{"name":"second"}]';

const DOCUMENTS = [
  "account: acme",
  `strategy: ${STRATEGY}
account: acme
fields:
  - { key: username, label: Username, type: text, required: true }
  - { key: password, label: Password, type: password, required: true }
login: { type: none }`,
  `blueprint: rows
account: acme
nodes:
  - { id: rows, type: input, refKey: rows }
  - { id: parsed, type: parse, from: rows, format: json }
  - { id: out, type: output, refKey: rows, from: parsed }`,
];

let installation: Awaited<ReturnType<typeof install>>;
let service: RunningService;
let caller: Caller;

before(async () => {
  installation = await install();
  await installation.apply(...DOCUMENTS);
  service = await installation.serve();
  caller = openCaller(service.url, await installation.createKey("acme"));
});

after(async () => await installation?.[Symbol.asyncDispose]());
afterEach(async () => await setClock(installation.database.db, REAL_TIME));

/** From now on it is this very millisecond. */
const stopClock = async (ms: number): Promise<void> =>
  await setClock(installation.database.db, `timestamptz '${new Date(ms).toISOString()}'`);

async function completedRun(): Promise<string> {
  const run = await caller.post(TRIGGER, { rows: ROWS });
  assert.equal(run.status, 202, run.text);
  assert.equal((await caller.waitForRun(run.body.id)).body.status, "completed");
  return run.body.id;
}

function assertProblem(answer: ApiAnswer, status: number, type: string): void {
  assert.deepEqual(
    [answer.status, Object.keys(answer.body), answer.body.error.type],
    [status, ["error"], type],
  );
}

// Spec, Credential session status: "pending | no | expiry | expires_at reached | expired | hosted_url becomes null"
// Spec, Credential session status 2: "expired is terminal and unusable; a new session must be created"
// Spec, Limits: "Credential session lifetime | 7 days by default"
test("a session is pending until the millisecond before its seven days are over, and then expired for good", async () => {
  const { body: session } = await caller.post("/credential-sessions", { strategy_id: STRATEGY });
  const expiresMs = Date.parse(session.expires_at);
  assert.equal(expiresMs - Date.parse(session.created_at), 7 * DAY_MS);
  const path = `/credential-sessions/${session.id}`;

  await stopClock(expiresMs - 1);
  assert.deepEqual((await caller.get(path)).body, session);
  const form = await (await fetch(session.hosted_url)).text();
  const csrf = /name="_csrf" value="([^"]*)"/.exec(form)?.[1] ?? "";

  await stopClock(expiresMs);
  const expired = { ...session, status: "expired", hosted_url: null };
  assert.deepEqual((await caller.get(path)).body, expired);
  const values = new URLSearchParams({ _csrf: csrf, username: "ada", password: "secret" });
  assert.equal((await fetch(session.hosted_url, { method: "POST", body: values })).status, 410);
  assert.equal((await fetch(session.hosted_url)).status, 410);
  assert.deepEqual((await caller.get(path)).body, expired);
  assert.ok(await connect(caller, STRATEGY, { username: "ada", password: "secret" }), "a new session works");
});

// Spec, Limits: "Idempotent replay window | 24 hours"
// Spec, Idempotency 2: "the response is stored with the key for 24 hours"
test("a key replays for 24 hours to the millisecond, and then is new, at each of the three endpoints", async () => {
  const credential = await connect(caller, STRATEGY, { username: "ada", password: "secret" });
  const key = { "idempotency-key": randomUUID() };
  const startMs = Date.now();
  const requests: [send: (headers: Record<string, string>) => Promise<ApiAnswer>, statusAfter: number][] = [
    [async (headers) => await caller.post("/credential-sessions", { strategy_id: STRATEGY }, headers), 201],
    [async (headers) => await caller.post(TRIGGER, { rows: ROWS }, headers), 202],
    [async (headers) => await caller.delete(`/credentials/${credential}`, headers), 404],
  ];
  for (const [send, statusAfter] of requests) {
    const headers = { "idempotency-key": `${key["idempotency-key"]}-${statusAfter}` };
    await stopClock(startMs);
    const original = await send(headers);
    assert.ok(original.status < 300, original.text);
    await stopClock(startMs + DAY_MS - 1);
    const replay = await send(headers);
    assert.deepEqual(
      [replay.status, replay.text, replay.headers.get("idempotent-replay")],
      [original.status, original.text, "true"],
    );
    await stopClock(startMs + DAY_MS);
    const later = await send(headers);
    assert.deepEqual([later.status, later.headers.get("idempotent-replay")], [statusAfter, null]);
    assert.notEqual(later.text, original.text);
  }
});

// Spec, GET /blueprint-runs/{runId}/results 2: "Presigned URLs expire after two hours"
// Spec, Limits: "Presigned URL lifetime | two hours | results"
test("a download URL works until the millisecond before its two hours are over, and then is 403", async () => {
  const run = await completedRun();
  const startMs = Date.now();
  await stopClock(startMs);
  const { body } = await caller.get(`/blueprint-runs/${run}/results`);
  await stopClock(startMs + 2 * HOUR_MS - 1);
  assert.equal((await fetch(body.results.rows)).status, 200);
  await stopClock(startMs + 2 * HOUR_MS);
  const expired = await fetch(body.results.rows);
  assert.equal(expired.status, 403);
  assert.equal(((await expired.json()) as { error: { type: string } }).error.type, "authorization_error");
});

// Spec, GET /blueprint-runs/{runId}/results 4: "After the run's data has been purged the endpoint returns 400"
// Spec, Errors: "results returns 409 while the run is incomplete and 400 after purge"
test("after its retention a run's results are 400, and its status stays", async () => {
  const run = await completedRun();
  const { text: status } = await caller.get(`/blueprint-runs/${run}/status`);
  await moveClock(installation.database.db, "31 days");
  await installation.database.db.query("select graphile_worker.add_job('housekeeping')");
  const results = async (query: string) => await caller.get(`/blueprint-runs/${run}/results${query}`);
  for (let poll = 0; poll < 200 && (await results("")).status === 200; poll++) await sleep(50);
  for (const query of ["", "?deliveryMethod=direct", "?deliveryMethod=presigned_url"]) {
    const answer = await results(query);
    assertProblem(answer, 400, "validation_error");
    assert.equal(answer.body.error.details[0].code, "run_data_purged");
  }
  assert.equal((await caller.get(`/blueprint-runs/${run}/status`)).text, status);
});

// Spec, Credential: "Field values are encrypted at rest and never returned"
test("what was typed into the form is in no row of the database and in no file of the data folder", async () => {
  const values = { username: `user-${randomUUID()}`, password: `secret-${randomUUID()}` };
  const known = `run-${randomUUID()}`;
  await connect(caller, STRATEGY, values);
  await caller.post(TRIGGER, { rows: ROWS, run_name: known });
  const { db } = installation.database;
  const tables = await db.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
      where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  );
  let all = "";
  for (const { name } of tables) {
    for (const { row } of await db.query<{ row: string }>(`select whole::text as row from ${name} as whole`))
      all += `${row}\n`;
  }
  // A run's name is no secret, and kept as bytes: what is searched is not empty.
  assert.ok(all.includes(Buffer.from(known).toString("hex")));
  for (const file of filesUnder(installation.dataFolder)) all += readFileSync(file, "latin1");
  for (const value of Object.values(values)) {
    for (const form of [
      value,
      Buffer.from(value).toString("hex"),
      Buffer.from(value).toString("base64").slice(0, -4),
    ]) {
      assert.ok(!all.includes(form), "a form's value can be read at rest");
    }
  }
});

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

// Spec, POST /credential-sessions: "Label for the vaulted credential in the operator dashboard"
// Spec, POST /blueprints/{blueprintKey}/trigger: "Display name of the run in the operator dashboard"
test("the names that a caller gives are kept with the credential and the run, for the operator", async () => {
  const names = { credential: "Ada's ledger", run: "March, part 2 \u{1f4c8}" };
  const session = await caller.post("/credential-sessions", {
    strategy_id: STRATEGY,
    name: names.credential,
  });
  await submitHostedForm(session.body.hosted_url, { username: "ada", password: "secret" });
  const run = await caller.post(TRIGGER, { rows: ROWS, run_name: names.run });
  const { db } = installation.database;
  const credentials = await db.query("select name from credential where session_id = $1", [session.body.id]);
  assert.deepEqual(credentials, [{ name: names.credential }]);
  const runs = await db.query("select convert_from(name, 'UTF8') as name from run where id = $1", [
    run.body.id,
  ]);
  assert.deepEqual(runs, [{ name: names.run }]);
});

// Spec, Blueprint run status: "cancelled | yes | cancelled"
test("a cancelled run shows cancelled as status and step, no error, and 409 for its results", async () => {
  const run = await completedRun();
  await installation.database.db.query(
    "update run set status = 'cancelled', progress_step = 'cancelled', response_bytes = null where id = $1",
    [run],
  );
  const { body } = await caller.get(`/blueprint-runs/${run}/status`);
  assert.deepEqual([body.status, body.progress_step, body.error], ["cancelled", "cancelled", null]);
  assertProblem(await caller.get(`/blueprint-runs/${run}/results`), 409, "conflict");
});

// Spec, Errors: "500 | internal_error | Unexpected server error"
test("a fault of the service is 500 internal_error in the envelope, tells nothing, and passes", async () => {
  const { db } = installation.database;
  const create = async () => await caller.post("/credential-sessions", { strategy_id: STRATEGY });
  await db.query("alter table credential_session rename to hidden_session");
  try {
    const answer = await create();
    assertProblem(answer, 500, "internal_error");
    assert.doesNotMatch(answer.text, /credential_session|relation|select|insert|42P01/i);
    assert.match(answer.headers.get("x-request-id") ?? "", /\w/);
  } finally {
    await db.query("alter table hidden_session rename to credential_session");
  }
  assert.equal((await create()).status, 201);
});
