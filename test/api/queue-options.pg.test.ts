// docs/api.md#queue-options: what a trigger's headers ask of the queue.
import assert from "node:assert/strict";
import { after, afterEach, before, test, type TestContext } from "node:test";
import { connect, openCaller, type Caller } from "../caller.ts";
import { moveClock } from "../clock.ts";
import { until } from "../eventually.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type Installation, type RunningService } from "../service.ts";
import { assertRefused } from "./stage.ts";

const NODES = `nodes:
  - { id: given, type: input, refKey: given, default: "[]" }
  - { id: rows, type: parse, from: given, format: json }
  - { id: out, type: output, refKey: out, from: rows }`;

let installation: Installation & AsyncDisposable;
let api: RunningService;
let caller: Caller;
let credential: string;

before(async () => {
  installation = await install();
  await installation.apply(
    "account: acme\nconcurrency: 1\nallowed_origins: [https://app.acme.example]",
    "strategy: strat_one\naccount: acme\nconcurrency: 1\nfields: [{ key: token, type: password }]\nlogin: { type: none }",
    `blueprint: open\naccount: acme\nmetadata: [{ name: po }]\n${NODES}`,
    `blueprint: one\naccount: acme\ncredentials: { it: { strategy: strat_one } }\n${NODES}`,
  );
  api = await installation.serve({}, ["api"]);
  caller = openCaller(api.url, await installation.createKey("acme"));
  credential = await connect(caller, "strat_one", { token: "of-one" });
});
after(async () => await installation?.[Symbol.asyncDispose]());
afterEach(async () => {
  await moveClock(installation.database.db, "0");
  await assertInvariants(installation);
});

type Headers = Readonly<Record<string, string>>;

async function trigger(headers: Headers = {}, body: object = {}, key = "open"): Promise<string> {
  const answer = await caller.post(`/blueprints/${key}/trigger`, body, { ...headers });
  assert.equal(answer.status, 202, answer.text);
  assert.deepEqual(Object.keys(answer.body), ["id", "run_key", "status"]);
  return answer.body.id;
}

const status = async (id: string) => (await caller.get(`/blueprint-runs/${id}/status`)).body;

async function work(t: TestContext): Promise<void> {
  const worker = await installation.serve({}, ["worker"]);
  t.after(async () => await worker.end());
}

const ended = async (...ids: readonly string[]): Promise<void> =>
  await until("the runs have ended", async () => {
    const seen = await Promise.all(ids.map(status));
    return seen.every(({ ended_at }) => ended_at !== null);
  });

async function rowOf(id: string): Promise<{ kind: string | null; detail: string | null; claimed: boolean }> {
  const [row] = await installation.database.db.query<{
    kind: string | null;
    detail: string | null;
    claimed: boolean;
  }>(
    `select error_kind as kind, error_detail as detail, claimed_at is not null as claimed from run where id = $1`,
    [id],
  );
  assert.ok(row);
  return row;
}

/** The runs in the order in which workers took them. */
async function inTurn(ids: readonly string[]): Promise<readonly string[]> {
  const rows = await installation.database.db.query<{ id: string }>(
    "select id from run where id = any($1) order by claimed_at, lease_epoch, id",
    [ids],
  );
  return rows.map(({ id }) => id);
}

const REFUSED: readonly (readonly [field: string, Headers])[] = [
  ["Latchkey-Delay", { "latchkey-delay": "" }],
  ["Latchkey-Delay", { "latchkey-delay": "-1" }],
  ["Latchkey-Delay", { "latchkey-delay": "1.5" }],
  ["Latchkey-Delay", { "latchkey-delay": "1e3" }],
  ["Latchkey-Delay", { "latchkey-delay": "10, 20" }],
  ["Latchkey-Delay", { "latchkey-delay": "2592001" }],
  ["Latchkey-Priority", { "latchkey-priority": "high" }],
  ["Latchkey-Priority", { "latchkey-priority": "11" }],
  ["Latchkey-Priority", { "latchkey-priority": "-11" }],
  ["Latchkey-Expires-In", { "latchkey-expires-in": "0" }],
  ["Latchkey-Expires-In", { "latchkey-expires-in": "5184001" }],
  ["Latchkey-Expires-In", { "latchkey-expires-in": "60", "latchkey-delay": "60" }],
];

test("a malformed option is refused by its name, before the body, and creates nothing", async () => {
  for (const [field, headers] of REFUSED) {
    const answer = await caller.post("/blueprints/open/trigger", {}, { ...headers });
    assertRefused(answer, 422, field);
    assert.match(answer.body.error.message, new RegExp(`\`${field}\` must be `));
  }
  const before = await caller.post("/blueprints/open/trigger", [], { "latchkey-delay": "soon" });
  assertRefused(before, 422, "Latchkey-Delay");
  const [none] = await installation.database.db.query("select from run limit 1");
  assert.equal(none, undefined);
});

test("a delayed run is an ordinary queued one until its time; a replay keeps the first one's options", async (t) => {
  const headers = { "idempotency-key": "later", "latchkey-delay": "600" };
  const id = await trigger(headers);
  const replay = await caller.post(
    "/blueprints/open/trigger",
    {},
    { "idempotency-key": "later", "latchkey-priority": "3", "latchkey-expires-in": "5" },
  );
  assert.deepEqual(
    [replay.body.id, replay.headers.get("idempotent-replay")],
    [id, "true"],
    "options are no part of the comparison",
  );
  await work(t);
  await ended(await trigger());
  const seen = await status(id);
  assert.deepEqual(
    [Object.keys(seen).length, seen.status, seen.progress_step, seen.started_at, seen.error],
    [9, "queued", "queued", null, null],
  );
  const { stdout } = await installation.command("runs", "show", id);
  assert.match(stdout, /^begins +\S.* at the earliest, as its caller asked$/m);
  assert.doesNotMatch(stdout, /^(expires|priority) /m);
  await moveClock(installation.database.db, "500 seconds");
  await ended(await trigger());
  assert.equal((await status(id)).status, "queued");
  await moveClock(installation.database.db, "602 seconds");
  await ended(id);
  assert.equal((await status(id)).status, "completed");
});

test("a run that no worker took in its time never begins, and fails", async (t) => {
  const [late, ofBoth, taken] = [
    await trigger({ "latchkey-expires-in": "60" }),
    await trigger({ "latchkey-delay": "30", "latchkey-expires-in": "60" }),
    await trigger({ "latchkey-expires-in": "3600" }),
  ];
  // Nothing but the admission keeps this one from beginning.
  const untimed = await trigger({ "latchkey-expires-in": "60", "latchkey-priority": "10" });
  await installation.database.db.query("delete from run_timer where run_id = $1", [untimed]);
  await moveClock(installation.database.db, "61 seconds");
  await work(t);
  await ended(late, ofBoth, taken);
  assert.equal((await status(taken)).status, "completed");
  for (const id of [late, ofBoth]) {
    const { status: state, started_at, error } = await status(id);
    assert.deepEqual([state, started_at, error.code], ["failed", null, "execution_failed"]);
    assert.deepEqual(await rowOf(id), {
      kind: "expired",
      detail: "No worker had taken it when the time of Latchkey-Expires-In ended.",
      claimed: false,
    });
  }
  assert.deepEqual(await rowOf(untimed), { kind: null, detail: null, claimed: false });
  const { stdout } = await installation.command("runs", "show", late);
  assert.match(stdout, /^state +Failed \(expired\)$/m);
  assert.match(stdout, /^expires +\S.*, unless it has begun by then$/m);
  const [left] = await installation.database.db.query("select from run_timer limit 1");
  assert.ok(left, "that of the run that began is not due yet");
  await caller.post(`/blueprint-runs/${untimed}/cancel`);
});

for (const [what, key, body] of [
  ["a slot of the account", "open", () => ({})],
  ["a credential", "one", () => ({ credential_id: credential })],
] as const)
  test(`of runs that wait for ${what}, those of a higher priority begin first, then the older ones`, async (t) => {
    await installation.apply(
      `account: acme\nconcurrency: ${key === "one" ? 10 : 1}\nallowed_origins: [https://app.acme.example]`,
    );
    const asked: readonly (string | null)[] = ["-10", null, "5", "0", "10", "5"];
    const ids: string[] = [];
    for (const priority of asked)
      ids.push(await trigger(priority === null ? {} : { "latchkey-priority": priority }, body(), key));
    await work(t);
    await ended(...ids);
    assert.deepEqual(
      (await inTurn(ids)).map((id) => ids.indexOf(id)),
      [4, 2, 5, 1, 3, 0],
    );
    const { stdout } = await installation.command("runs", "show", ids[4] ?? "");
    assert.match(stdout, /^priority +10$/m);
  });
