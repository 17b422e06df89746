// docs/test-mode.md#the-test-clock: what it moves, what it never moves, and whose.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { purgeDueRuns } from "#db/runs/purges.ts";
import { MOVED_BY_CLOCK } from "#db/test-clock.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { BLUEPRINT, DOCUMENTS, STRATEGY } from "../contract/documents.ts";
import { TRIGGER } from "../contract/every-operation.ts";
import { until } from "../eventually.ts";
import { install } from "../service.ts";

const DAY_MS = 86_400_000;

let installation: Awaited<ReturnType<typeof install>>;
let live: Caller;
let tester: Caller;

before(async () => {
  installation = await install();
  await installation.apply(...DOCUMENTS);
  const { url } = await installation.serve();
  live = openCaller(url, await installation.createKey("acme"));
  tester = openCaller(url, await installation.createKey("acme", { isTest: true }));
});
after(async () => await installation?.[Symbol.asyncDispose]());

/** Columns of time of what belongs to an account that the clock does not move, and why. */
const UNMOVED: Readonly<Record<string, string>> = {
  "api_key.expires_at": "who may call goes by the real time",
  "audit_entry.occurred_at": "the audit log is never moved",
  "credential.candidate_at": "a login takes its real time",
  "credential.login_until": "a lease",
  "credential.login_locked_until": "a lock",
  "credential_session.login_closed_until": "a lock",
  "event_listener.ends_at": "a connection",
  "live_picture.taken_at": "when somebody looks at a run",
  "live_picture.watched_until": "when somebody looks at a run",
  "oauth_attempt.expires_at": "no login of test mode is OAuth's",
  "oauth_token.expires_at": "no login of test mode is OAuth's",
  "proposal.expires_at": "no document of a test account is proposed",
  "review_presence.expires_at": "who looks at a review now",
  "run.deadline_at": "a run that is executed takes its real time",
  "run.not_before": "a lease",
  "run_poll.wakes_at": "requests to a target are that far apart",
  "schedule.next_at": "a time of the account's clock",
  "schedule.queued_at": "a time of the account's clock",
  "throttle_slot.next_at": "requests to a target are that far apart",
  "webhook_secret.ends_at": "an endpoint checks signatures by the real time",
};

/** Times that have happened. */
const HAPPENED =
  /(created|updated|completed|noted|opened|failed|started|ended|admitted|purged|parked|resumed|claimed|used|revoked|disabled|decided|asked|began|paused|occurred|signed)_at$|_since$|\.since$/;

test("every column of time of what belongs to an account is moved, has happened, or has a reason", () => {
  const schema = readFileSync(new URL("../../src/db/migrations/schema.sql", import.meta.url), "utf8");
  const columns = [...schema.matchAll(/create table (\w+) \((.*?)\n\)/gs)].flatMap(
    ([, table = "", body = ""]) =>
      /^ {2}account_id text/m.test(body) || ["run_timer", "review_presence", "live_picture"].includes(table)
        ? [...body.matchAll(/^ {2}(\w+) timestamp/gm)].map(([, column = ""]) => `${table}.${column}`)
        : [],
  );
  assert.ok(columns.length > 60);
  const known = [...Object.keys(MOVED_BY_CLOCK), ...Object.keys(UNMOVED)];
  assert.deepEqual(
    columns.filter((column) => !HAPPENED.test(column) && !known.includes(column)),
    [],
  );
  const others = ["account.clock_ahead_ms", "run.retention_ms"];
  assert.deepEqual(
    known.filter((column) => !columns.includes(column) && !others.includes(column)),
    [],
  );
});

const now = async (): Promise<number> => Date.parse((await tester.get("/test-clock")).body.now);

async function advance(ms: number): Promise<void> {
  const to = new Date((await now()) + ms).toISOString();
  for (const _twice of [1, 2]) {
    const { status, text, body } = await tester.put("/test-clock", { now: to });
    assert.equal(status, 200, text);
    assert.ok(Math.abs(Date.parse(body.now) - Date.parse(to)) < 60_000, "the second request moves nothing");
  }
}

/** The same things of both modes. */
const both = async <T>(make: (caller: Caller) => Promise<T>): Promise<readonly [T, T]> => [
  await make(live),
  await make(tester),
];

const newSession = async (caller: Caller, key?: string) =>
  await caller.post(
    "/credential-sessions",
    { strategy_id: STRATEGY },
    key === undefined ? {} : { "idempotency-key": key },
  );

test("sessions expire and idempotency windows end: of the test account alone", async () => {
  const sessions = await both(async (caller) => (await newSession(caller, "once")).body.id);
  await advance(6 * DAY_MS);
  const statuses = async () =>
    await Promise.all(
      [live, tester].map(
        async (caller, index) => (await caller.get(`/credential-sessions/${sessions[index]}`)).body.status,
      ),
    );
  assert.deepEqual(await statuses(), ["pending", "pending"]);
  assert.deepEqual(
    await both(async (caller) => (await newSession(caller, "once")).headers.get("idempotent-replay")),
    ["true", null],
  );
  await advance(2 * DAY_MS);
  assert.deepEqual(await statuses(), ["pending", "expired"]);
});

test("the data of an ended run is purged after its retention: of the test account alone", async () => {
  const runs = await both(async (caller) => {
    const credential = await connect(caller, STRATEGY, { note: "n" });
    const { body } = await caller.post(`/blueprints/${BLUEPRINT}/trigger`, {
      ...TRIGGER,
      credential_id: credential,
    });
    assert.equal((await caller.waitForRun(body.id)).body.status, "completed");
    return body.id;
  });
  const results = async () => [
    (await live.get(`/blueprint-runs/${runs[0]}/results`)).status,
    (await tester.get(`/blueprint-runs/${runs[1]}/results`)).status,
  ];
  await advance(29 * DAY_MS);
  await purgeDueRuns(installation.database.db, 100);
  assert.deepEqual(await results(), [200, 200]);
  await advance(2 * DAY_MS);
  await purgeDueRuns(installation.database.db, 100);
  assert.deepEqual(await results(), [200, 400]);
});

test("a run that was delayed begins: of the test account alone", async () => {
  const runs = await both(async (caller) => {
    const credential = await connect(caller, STRATEGY, { note: "n" });
    const body = { ...TRIGGER, credential_id: credential };
    const answer = await caller.post(`/blueprints/${BLUEPRINT}/trigger`, body, { "latchkey-delay": "86400" });
    assert.equal(answer.status, 202, answer.text);
    return answer.body.id;
  });
  await advance(DAY_MS + 1_000);
  assert.equal((await tester.waitForRun(runs[1])).body.status, "completed");
  assert.equal((await live.get(`/blueprint-runs/${runs[0]}/status`)).body.status, "queued");
});

test("schedules begin the runs of each time that has passed, by their rules: of the test account alone", async () => {
  const terms = async (caller: Caller) => ({
    blueprint_key: BLUEPRINT,
    cron: "0 3 * * *",
    time_zone: "Europe/Berlin",
    missed: "all",
    overlap: "queue",
    trigger: { ...TRIGGER, credential_id: await connect(caller, STRATEGY, { note: "n" }) },
  });
  const put = async (caller: Caller) => (await caller.put("/schedules/nightly", await terms(caller))).body;
  const [, schedule] = await both(put);
  const first = Date.parse(schedule.next_at);
  assert.ok(
    first > (await now()) && first <= (await now()) + DAY_MS,
    "its next time is one of the test clock",
  );
  await advance(3 * DAY_MS);
  const read = async (caller: Caller) => (await caller.get("/schedules/nightly")).body;
  await until(
    "its times have been decided",
    async () => Date.parse((await read(tester)).next_at) > (await now()),
  );
  const fires = await installation.database.db.query<{ test: boolean; times: number }>(
    `select account.test_of is not null as test, count(*)::int as times from schedule_fire
       join schedule on schedule.id = schedule_id join account on account.id = schedule.account_id group by 1`,
  );
  assert.ok(
    fires.every(({ test: isTest, times }) => isTest && times >= 2),
    JSON.stringify(fires),
  );
  assert.equal(fires.length, 1);
  assert.equal((await read(live)).last, null);
});

test("leases, locks and the audit log stay, and each move has one entry", async () => {
  const { db } = installation.database;
  const state = async () =>
    await db.query(
      `select (select json_agg(array[id::text, occurred_at::text] order by id) from audit_entry where action <> 'test_clock.move')::text as audit,
         (select json_agg(array[id, login_until::text, login_locked_until::text] order by id) from credential)::text as locks,
         (select json_agg(array[id, deadline_at::text, created_at::text, ended_at::text] order by id) from run)::text as runs`,
    );
  await until(
    "the runs of the schedule have ended",
    async () =>
      (await db.query("select 1 from schedule_fire join run on run.id = run_id where run.ended_at is null"))
        .length === 0,
  );
  await db.query(
    `update credential set login_rejections = 2, login_locked_until = app_now() + interval '1 hour'`,
  );
  const moves = async () =>
    (await db.query("select 1 from audit_entry where action = 'test_clock.move'")).length;
  const [before, count] = [await state(), await moves()];
  await advance(1_000);
  assert.deepEqual(await state(), before);
  assert.equal(await moves(), count + 1);
});

test("a move that is sent twice at once moves the clock once", async () => {
  const { db } = installation.database;
  const before = await now();
  const to = new Date(before + DAY_MS).toISOString();
  let sent: readonly Promise<unknown>[] = [];
  await db.transaction(async (tx) => {
    await tx.query("select 1 from account where test_of is not null for no key update");
    sent = [tester.put("/test-clock", { now: to }), tester.put("/test-clock", { now: to })];
    await until("both wait for the account's row", async () => {
      const waiting = await db.query(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return waiting.length === sent.length;
    });
  });
  await Promise.all(sent);
  const movedMs = (await now()) - before;
  assert.ok(movedMs >= DAY_MS && movedMs < 1.5 * DAY_MS, String(movedMs));
});

test("without its audit entry it does not move", async () => {
  const { db } = installation.database;
  await db.query(
    `create function refuse_entry() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`,
  );
  await db.query(
    `create trigger refuse_audit before insert on audit_entry for each row execute function refuse_entry()`,
  );
  const before = await now();
  const to = new Date(before + DAY_MS).toISOString();
  assert.equal((await tester.put("/test-clock", { now: to })).status, 500);
  await db.query("drop trigger refuse_audit on audit_entry");
  assert.ok((await now()) < before + DAY_MS);
});
