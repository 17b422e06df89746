// docs/schedules.md: runs that begin by the clock.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { fireSchedules } from "#actions/schedules/fire-schedules.ts";
import { assertRefused } from "../api/stage.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { moveClock } from "../clock.ts";
import { must } from "#lib/assert.ts";
import { until } from "../eventually.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type Installation, type RunningService } from "../service.ts";
import { testInAll } from "../tiers.ts";
import { endRuns, firesOf, firingOf, stopClock } from "./stage.ts";

const NODES = `nodes:
  - { id: given, type: input, refKey: given, default: "[]" }
  - { id: rows, type: parse, from: given, format: json }
  - { id: out, type: output, refKey: out, from: rows }`;
const OPEN = `blueprint: open\naccount: acme\nmetadata: [{ name: po, required: true }]\n${NODES}`;

let installation: Installation & AsyncDisposable;
let api: RunningService;
let caller: Caller;
let stranger: Caller;

before(async () => {
  installation = await install();
  await installation.apply(
    "account: acme\nallowed_origins: [https://app.acme.example]",
    "account: other",
    "strategy: strat_one\naccount: acme\nfields: [{ key: token, type: password }]\nlogin: { type: none }",
    OPEN,
    `blueprint: one\naccount: acme\ncredentials: { it: { strategy: strat_one } }\n${NODES}`,
  );
  api = await installation.serve({}, ["api"]);
  caller = openCaller(api.url, await installation.createKey("acme"));
  stranger = openCaller(api.url, await installation.createKey("other"));
});
after(async () => await installation?.[Symbol.asyncDispose]());
afterEach(async () => {
  await endRuns(installation);
  await installation.database.db.query("delete from schedule");
  await moveClock(installation.database.db, "0");
});

const TERMS = { blueprint_key: "open", cron: "0 6 * * *", time_zone: "Europe/Berlin", trigger: { po: "7" } };

async function put(key: string, terms: object, status = 201): Promise<any> {
  const answer = await caller.put(`/schedules/${key}`, terms);
  assert.equal(answer.status, status, answer.text);
  return answer.body;
}

/** Two workers look at the same time. */
async function fire(at?: string): Promise<void> {
  if (at !== undefined) await stopClock(installation, at);
  await Promise.all([fireSchedules(firingOf(installation)), fireSchedules(firingOf(installation))]);
}

const read = async (key: string): Promise<any> => (await caller.get(`/schedules/${key}`)).body;

const runs = async (where = "true"): Promise<readonly { id: string; status: string }[]> =>
  await installation.database.db.query(
    `select id, status from run where schedule_id is not null and ${where} order by created_at, id`,
  );

const audited = async (): Promise<readonly string[]> =>
  (
    await installation.database.db.query<{ action: string }>(
      "select action from audit_entry where action like 'schedule.%' or action = 'run.cancel' order by id",
    )
  ).map(({ action }) => action);

test("a schedule is created, replaced, read and deleted; the same request again changes nothing", async () => {
  await stopClock(installation, "2026-11-23T12:00:00Z");
  const before = (await audited()).length;
  const made = await put("daily", TERMS);
  assert.deepEqual(made, {
    key: "daily",
    blueprint_key: "open",
    cron: "0 6 * * *",
    time_zone: "Europe/Berlin",
    missed: "once",
    overlap: "skip",
    jitter: "0",
    status: "active",
    paused_reason: null,
    paused_until: null,
    paused_detail: null,
    next_at: "2026-11-24T05:00:00.000Z",
    last: null,
    created_at: "2026-11-23T12:00:00.000Z",
    updated_at: "2026-11-23T12:00:00.000Z",
  });
  await stopClock(installation, "2026-11-23T13:00:00Z");
  assert.deepEqual(await put("daily", TERMS, 200), made);
  const changed = await put("daily", { ...TERMS, cron: "0 7 * * *", overlap: "queue" }, 200);
  assert.deepEqual(
    [changed.next_at, changed.overlap, changed.updated_at],
    ["2026-11-24T06:00:00.000Z", "queue", "2026-11-23T13:00:00.000Z"],
  );
  assert.deepEqual(await read("daily"), changed);
  assert.equal((await stranger.get("/schedules/daily")).status, 404);
  assert.equal((await stranger.delete("/schedules/daily")).status, 404);
  assert.equal((await caller.delete("/schedules/daily")).status, 204);
  assert.equal((await caller.get("/schedules/daily")).status, 404);
  assert.deepEqual((await audited()).slice(before), [
    "schedule.create",
    "schedule.update",
    "schedule.delete",
  ]);
});

test("what could never run is refused by its field", async () => {
  const refused = async (field: string, terms: object): Promise<void> =>
    assertRefused(await caller.put("/schedules/x", { ...TERMS, ...terms }), 422, field);
  await refused("cron", { cron: "0 6 * *" });
  await refused("cron", { cron: "0 0 31 2 *" });
  await refused("cron", { cron: null });
  await refused("time_zone", { time_zone: "Berlin" });
  await refused("missed", { missed: "never" });
  await refused("overlap", { overlap: 1 });
  for (const jitter of ["2d", "-1s", "soon", 5, null]) await refused("jitter", { jitter });
  await refused("blueprint_key", { blueprint_key: "none" });
  await refused("trigger", { trigger: [] });
  await refused("trigger", { trigger: { po: "x".repeat(65_536) } });
  await refused("trigger.po", { trigger: {} });
  await refused("trigger.credential_id", { trigger: { po: "7", credential_id: "cred_unknown" } });
  await refused("every", { every: "day" });
  assert.equal((await caller.put("/schedules/a%20b", TERMS)).status, 404);
  const [none] = await installation.database.db.query("select from schedule limit 1");
  assert.equal(none, undefined);
});

test("each time has one run, however many workers look, with its trigger; a time that is not there yet has none", async () => {
  await stopClock(installation, "2026-11-23T12:00:00Z");
  await put("daily", TERMS);
  await fire("2026-11-24T04:59:59Z");
  assert.deepEqual(await firesOf(installation, "daily"), []);
  await fire("2026-11-24T05:00:00Z");
  await fire();
  await endRuns(installation);
  await fire("2026-11-25T05:00:00.500Z");
  assert.deepEqual(await firesOf(installation, "daily"), ["11-24T05:00 run", "11-25T05:00 run"]);
  const [run] = await installation.database.db.query<{ metadata: string; by: number }>(
    `select convert_from(metadata, 'UTF8') as metadata, num_nonnulls(api_key_id, operator_id) as by from run where schedule_id is not null limit 1`,
  );
  assert.deepEqual(run, { metadata: '{"po":"7"}', by: 0 });
  const { last, next_at } = await read("daily");
  assert.deepEqual(
    [last.due_at, last.outcome, next_at],
    ["2026-11-25T05:00:00.000Z", "run", "2026-11-26T05:00:00.000Z"],
  );
  assert.match(last.run_id, /^run_/);
});

const MISSED: readonly (readonly [rule: string, at: string, readonly string[]])[] = [
  ["once", "2026-11-24T12:00:00Z", ["11-24T09:00 missed", "11-24T10:00 missed", "11-24T11:00 run"]],
  ["all", "2026-11-24T12:00:00Z", ["11-24T09:00 run", "11-24T10:00 run", "11-24T11:00 run"]],
  ["skip", "2026-11-24T12:00:00Z", ["11-24T09:00 missed", "11-24T10:00 missed", "11-24T11:00 missed"]],
  ["skip", "2026-11-24T11:01:00Z", ["11-24T09:00 missed", "11-24T10:00 missed", "11-24T11:00 run"]],
];

for (const [rule, at, expected] of MISSED)
  test(`of three times that passed, with missed: ${rule}, at ${at}: ${expected.join(", ")}`, async () => {
    await stopClock(installation, "2026-11-24T08:30:00Z");
    await put("office", { ...TERMS, cron: "0 9,10,11 * * *", time_zone: "UTC", missed: rule });
    await fire(at);
    await fire(at);
    assert.deepEqual(await firesOf(installation, "office"), expected);
  });

test("with jitter the runs of one time begin one after the other, each once and before the next time", async () => {
  const { db } = installation.database;
  await stopClock(installation, "2026-11-24T08:30:00Z");
  const hourly = { ...TERMS, cron: "0 * * * *", time_zone: "UTC", missed: "once" };
  const keys = Array.from({ length: 20 }, (_, at) => `spread-${at}`);
  for (const key of keys) await put(key, { ...hourly, jitter: "1d" });
  const { next_at, jitter } = await read("spread-0");
  assert.deepEqual([next_at, jitter], ["2026-11-24T09:00:00.000Z", "1d"], "the time itself stays as it is");
  // The same again for every worker: it follows from the schedule and the time.
  const looks = async (): Promise<readonly { key: string; ms: number }[]> =>
    await db.query(
      `select key, (extract(epoch from look_at - next_at) * 1000)::float8 as ms from schedule
       where key like 'spread-%' order by look_at`,
    );
  const planned = await looks();
  for (const key of keys) await put(key, { ...hourly, jitter: "1d", overlap: "queue" }, 200);
  assert.deepEqual(await looks(), planned);
  assert.ok(planned.every(({ ms }) => ms >= 0 && ms < 3_600_000));
  assert.ok(new Set(planned.map(({ ms }) => Math.floor(ms / 900_000))).size > 1, JSON.stringify(planned));

  const clock = (ms: number): string => new Date(Date.UTC(2026, 10, 24, 9) + ms).toISOString();
  for (let looked = 0; looked < 2; looked++) await fire(clock(planned[10]?.ms ?? 0));
  for (const [at, { key }] of planned.entries())
    assert.deepEqual(await firesOf(installation, key), at <= 10 ? ["11-24T09:00 run"] : [], key);
  await endRuns(installation);
  await fire(clock(3_599_999));
  for (const { key } of planned)
    assert.deepEqual((await firesOf(installation, key)).slice(0, 1), ["11-24T09:00 run"], key);
  for (const key of keys) await caller.delete(`/schedules/${key}`);
});

test("while a run has not ended the next one is left out, waits, or cancels it", async () => {
  const hourly = { ...TERMS, cron: "0 * * * *", time_zone: "UTC" };
  await stopClock(installation, "2026-11-24T08:30:00Z");
  for (const overlap of ["skip", "queue", "cancel"]) await put(overlap, { ...hourly, overlap });
  for (const hour of ["09", "10", "11"]) await fire(`2026-11-24T${hour}:00:00Z`);
  assert.deepEqual(await firesOf(installation, "skip"), [
    "11-24T09:00 run",
    "11-24T10:00 overlap",
    "11-24T11:00 overlap",
  ]);
  // That of 10:00 waited until 11:00 took its place.
  assert.deepEqual(await firesOf(installation, "queue"), ["11-24T09:00 run", "11-24T10:00 overlap"]);
  assert.deepEqual(await firesOf(installation, "cancel"), [
    "11-24T09:00 run",
    "11-24T10:00 run",
    "11-24T11:00 run",
  ]);
  const cancelled = await runs("status = 'cancelled'");
  assert.equal(cancelled.length, 2);
  assert.equal((await audited()).filter((action) => action === "run.cancel").length, 2);
  await endRuns(installation);
  await fire("2026-11-24T11:00:06Z");
  assert.deepEqual((await firesOf(installation, "queue")).slice(2), ["11-24T11:00 run"]);
});

test("a deleted credential pauses its schedules with the reason, in the transaction of the delete; putting it again ends that", async () => {
  const credential = await connect(caller, "strat_one", { token: "t" });
  await stopClock(installation, "2026-11-24T08:30:00Z");
  const terms = { ...TERMS, blueprint_key: "one", trigger: { credential_id: credential } };
  await put("of-user", terms);
  await put("of-nobody", TERMS);
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 204);
  const { status, paused_reason, next_at } = await read("of-user");
  assert.deepEqual([status, paused_reason, next_at], ["paused", "credential_deleted", null]);
  assert.equal((await read("of-nobody")).status, "active");
  await fire("2026-11-25T05:00:00Z");
  assert.deepEqual(await firesOf(installation, "of-user"), []);
  assertRefused(await caller.put("/schedules/of-user", terms), 422, "trigger.credential_id");
  await moveClock(installation.database.db, "0");
  const another = await connect(caller, "strat_one", { token: "t" });
  assert.equal(
    (await put("of-user", { ...terms, trigger: { credential_id: another } }, 200)).status,
    "active",
  );
  assert.equal((await audited()).at(-2), "schedule.pause");
});

test("while a credential is locked its times are left out, and it goes on by itself", async () => {
  const credential = await connect(caller, "strat_one", { token: "t" });
  await stopClock(installation, "2026-11-24T08:30:00Z");
  const trigger = { credential_id: credential };
  await put("of-user", { ...TERMS, blueprint_key: "one", cron: "0 * * * *", time_zone: "UTC", trigger });
  await installation.database.db.query(
    "update credential set login_rejections = 3, login_locked_until = '2026-11-24T09:30:00Z' where id = $1",
    [credential],
  );
  const locked = await read("of-user");
  assert.deepEqual(
    [locked.status, locked.paused_reason, locked.paused_until],
    ["paused", "credential_locked", "2026-11-24T09:30:00.000Z"],
  );
  await fire("2026-11-24T09:00:00Z");
  await fire("2026-11-24T10:00:00Z");
  assert.deepEqual(await firesOf(installation, "of-user"), [
    "11-24T09:00 credential_locked",
    "11-24T10:00 run",
  ]);
  assert.equal((await read("of-user")).status, "active");
});

test("a trigger that the Blueprint refuses by now, and a retired Blueprint, pause it with the reason", async () => {
  await stopClock(installation, "2026-11-24T08:30:00Z");
  await put("first", TERMS);
  await installation.apply(OPEN.replace("{ name: po, required: true }", "{ name: order, required: true }"));
  await fire("2026-11-25T05:00:00Z");
  const { paused_reason, paused_detail, last } = await read("first");
  assert.deepEqual(
    [paused_reason, paused_detail, last.outcome],
    ["refused", "Required metadata is missing.", "refused"],
  );
  await installation.apply(OPEN);
  await put("first", TERMS, 200);
  await installation.apply(OPEN.replace("blueprint: open", "blueprint: open\nretired: true"));
  await fire("2026-11-26T05:00:00Z");
  assert.equal((await read("first")).paused_reason, "blueprint_retired");
  await installation.apply(OPEN);
});

test("a worker of the service looks by itself, and executes the run", async (t) => {
  const worker = await installation.serve({}, ["worker"]);
  t.after(async () => await worker.end());
  await put("minutely", { ...TERMS, cron: "* * * * *", time_zone: "UTC" });
  await moveClock(installation.database.db, "61 seconds");
  await until("its run is completed", async () => (await runs("status = 'completed'")).length > 0);
  const [completed] = await runs("status = 'completed'");
  const shown = await installation.command("runs", "show", must(completed, "a run").id);
  assert.match(shown.stdout, /^schedule +minutely$/m);
  await caller.delete("/schedules/minutely");
  await until("nothing is left to do", async () => (await runs("ended_at is null")).length === 0);
  await assertInvariants(installation);
});

for (const point of ["schedule.before_commit", "schedule.after_commit"])
  testInAll(
    "two workers that look at the same time, and the database's one row for each time",
    `a worker that is killed at ${point} loses no time and doubles none`,
    {},
    async () => {
      await stopClock(installation, "2026-11-24T08:30:00Z");
      await put("killed", { ...TERMS, cron: "0 9 * * *", time_zone: "UTC" });
      await stopClock(installation, "2026-11-24T09:00:00Z");
      const doomed = await installation.serveProcess({ LATCHKEY_FAILPOINTS: `${point}=kill:1` }, ["worker"]);
      await until("it is killed", () => doomed.child.signalCode !== null);
      const another = await installation.serveProcess({}, ["worker"]);
      await until("the time has its run", async () => (await firesOf(installation, "killed")).length > 0);
      await fire();
      assert.deepEqual(await firesOf(installation, "killed"), ["11-24T09:00 run"]);
      assert.equal((await runs(`schedule_id = (select id from schedule where key = 'killed')`)).length, 1);
      await another.end();
    },
  );
