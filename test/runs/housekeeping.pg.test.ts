// What the worker tidies up on its timetable, and that nothing waits for it: only time decides.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { parseCrontab } from "graphile-worker";
import { noteExpiredSessions } from "#db/credentials/credential-sessions.ts";
import { TIMETABLE } from "#worker/chores.ts";
import { moveClock } from "../clock.ts";
import { eventually } from "../eventually.ts";
import { openCaller, type Caller } from "../caller.ts";
import { runHousekeeping } from "../flow/run-history.ts";
import { assertInvariants } from "../invariants.ts";
import { install } from "../service.ts";

const DOCUMENTS = [
  "account: acme\nsession_lifetime: 2h\nretention: 3h\nembed_origins: [https://app.acme.example]",
  "strategy: strat_it\naccount: acme\nhosts: [https://it.example]\nfields: [{ key: token, type: password }]\nlogin: { type: bearer, token: token }",
  `blueprint: rows
account: acme
nodes:
  - { id: rows, type: input, refKey: rows }
  - { id: parsed, type: parse, from: rows, format: json }
  - { id: out, type: output, refKey: rows, from: parsed }`,
  `blueprint: slotted
account: acme
credentials: { it: { strategy: strat_it } }
nodes:
  - { id: rows, type: input, refKey: rows }
  - { id: parsed, type: parse, from: rows, format: json }
  - { id: out, type: output, refKey: rows, from: parsed }`,
];

let installation: Awaited<ReturnType<typeof install>>;
let caller: Caller;

before(async () => {
  installation = await install();
  await installation.apply(...DOCUMENTS);
  const key = await installation.createKey("acme");
  caller = openCaller((await installation.serve()).url, key);
});
after(async () => await installation?.[Symbol.asyncDispose]());

test("the timetable knows the tasks", async () => {
  const known = async () => {
    const rows = await installation.database.db.query<{ task: string }>(
      "select identifier as task from graphile_worker._private_known_crontabs order by 1",
    );
    return rows.length === 0 ? undefined : rows.map(({ task }) => task);
  };
  assert.deepEqual(await eventually("it is known", known, 60_000), ["housekeeping", "sweep_objects"]);
});

test("the timetable's chores are done one at a time, and one that is late is not added twice", async () => {
  const { db } = installation.database;
  const add = async (task: string): Promise<void> => {
    const options = parseCrontab(TIMETABLE).find((entry) => entry.task === task)?.options;
    await db.query(
      `select graphile_worker.add_job($1, queue_name => $2, job_key => $3, run_at => now() + interval '1 hour')`,
      [task, options?.queueName, options?.jobKey],
    );
  };
  const tasks = ["housekeeping", "sweep_objects"];
  for (const task of [...tasks, ...tasks]) await add(task);
  const jobs = async () =>
    await db.query<{ task: string; isLocked: boolean }>(
      `select task_identifier as task, locked_at is not null as "isLocked" from graphile_worker.jobs
       where task_identifier = any($1) order by 1`,
      [tasks],
    );
  assert.deepEqual(
    (await jobs()).map(({ task }) => task),
    tasks,
  );
  // Whichever begins is held at what it reads: both read the accounts or the keys.
  const client = await db.pool.connect();
  await client.query("begin");
  await client.query("lock table run, account in access exclusive mode");
  await db.query("update graphile_worker._private_jobs set run_at = now() where key = any($1)", [tasks]);
  const isHeld = async (): Promise<true | undefined> =>
    (await jobs()).some(({ isLocked }) => isLocked) ? true : undefined;
  await eventually("one has begun", isHeld, 60_000);
  await sleep(1_500);
  assert.deepEqual((await jobs()).filter(({ isLocked }) => isLocked).length, 1, "a poll later");
  await client.query("rollback");
  client.release();
  await eventually("both are done", async () => ((await jobs()).length === 0 ? true : undefined), 60_000);
});

test("sessions expire, keys are free again and runs are purged when their time is over: the first two at once, rows by housekeeping", async () => {
  const { db } = installation.database;
  const trigger = async () =>
    await caller.post("/blueprints/rows/trigger", { rows: '[{"a":1}]' }, { "idempotency-key": "k" });
  const count = async (sql: string): Promise<number> => (await db.query(sql)).length;
  const session = (await caller.post("/credential-sessions", { strategy_id: "strat_it" })).body.id;
  const embedded = {
    origin: "https://app.acme.example",
    blueprint_keys: ["slotted"],
    expires_in_seconds: 7_200,
  };
  const flow = (await caller.post("/embedded-credential-sessions", embedded)).body.id;
  const noted = async (): Promise<number> =>
    await count(
      `select 1 from audit_entry where actor_kind = 'service'
       and (action, subject_id) in (('session.expire', '${session}'), ('embedded_session.expire', '${flow}'))`,
    );
  const statusOf = async (): Promise<string> =>
    (await caller.get(`/credential-sessions/${session}`)).body.status;
  const first = await trigger();
  assert.equal((await caller.waitForRun(first.body.id)).body.status, "completed");
  const results = async (): Promise<number> =>
    (await caller.get(`/blueprint-runs/${first.body.id}/results`)).status;

  await moveClock(db, "1 hour 50 minutes");
  await runHousekeeping(db);
  assert.deepEqual(
    [await statusOf(), await noted(), await results(), (await trigger()).body.id],
    ["pending", 0, 200, first.body.id],
  );
  await moveClock(db, "2 hours 1 minute");
  assert.deepEqual([await statusOf(), await noted()], ["expired", 0], "by the clock, noted or not");
  await moveClock(db, "3 hours 10 minutes");
  assert.equal(await results(), 200, "purged by housekeeping, and not before");
  const givesUp = new Error("rolled back");
  const meanwhile = db.transaction(async (tx) => {
    const expired = await noteExpiredSessions(tx, 10);
    assert.ok(expired.some(({ id }) => id === session));
    await runHousekeeping(db);
    assert.equal(
      await noted(),
      1,
      "a session that another process is noting is left to it, and keeps nothing",
    );
    throw givesUp;
  });
  await assert.rejects(meanwhile, givesUp);
  await runHousekeeping(db);
  assert.deepEqual([await results(), await noted()], [400, 2]);
  const [entry] = await db.query<{ detail: string }>(
    `select detail from audit_entry where action = 'embedded_session.expire'`,
  );
  assert.deepEqual(JSON.parse(entry?.detail ?? ""), { origin: "https://app.acme.example", blueprints: 1 });
  await moveClock(db, "23 hours 50 minutes");
  await runHousekeeping(db);
  assert.equal(await noted(), 2, "once");
  assert.equal((await trigger()).body.id, first.body.id, "within 24 hours");
  await moveClock(db, "24 hours 10 minutes");
  const second = await trigger();
  assert.notEqual(second.body.id, first.body.id, "the row is there still, and does not count");
  assert.equal((await caller.waitForRun(second.body.id)).body.status, "completed");
  await moveClock(db, "49 hours");
  assert.equal(await count("select 1 from idempotency_key"), 1);
  await runHousekeeping(db);
  assert.equal(await count("select 1 from idempotency_key"), 0);
  await moveClock(db, "0 hours");
  await assertInvariants(installation, { run_overdue: "the clock went back", audit_unchained: "likewise" });
});
