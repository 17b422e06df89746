// docs/webhooks.md: events reach an account's endpoints, signed, at least once, and harm nothing else.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { refuseEntries } from "../audit/refuse-entries.ts";
import { deleteOldEvents } from "#db/webhooks/webhook-deliveries.ts";
import { limits } from "#domain/limits.ts";
import { connect, openCaller, submitHostedForm, type Caller } from "../caller.ts";
import { expectHeldJson } from "../cli/held-surface.ts";
import { runCommand } from "../cli/program.ts";
import { moveClock, REAL_TIME, setClock } from "../clock.ts";
import { until } from "../eventually.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget, type Target } from "../flow/target.ts";
import { install } from "../service.ts";
import { isSignedBy, startReceiver, type Answer, type Received, type Receiver } from "./stage.ts";

let target: Target;
let receiver: Receiver;
let installation: Awaited<ReturnType<typeof install>>;
let caller: Caller;
/** How the receiver answers, by the path. */
const answers = new Map<string, (delivery: Received) => Answer | null>();

before(async () => {
  target = await startTarget(ledger);
  receiver = await startReceiver((delivery) => {
    const answer = answers.get(delivery.path);
    return answer === undefined ? { status: 204 } : answer(delivery);
  });
  installation = await install();
  await installation.apply(
    ...ledgerDocuments(target.url),
    "account: quiet\nallowed_origins: [http://localhost:3000]",
  );
  const service = await installation.serve();
  caller = openCaller(service.url, await installation.createKey("acme"));
});

afterEach(async () => {
  answers.clear();
  await setClock(installation.database.db, REAL_TIME);
  await installation.database.db.query(
    "delete from webhook_attempt; delete from webhook_delivery; delete from webhook_secret; delete from webhook_endpoint; delete from webhook_event",
  );
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
  await receiver?.close();
});

interface Endpoint {
  readonly id: string;
  readonly secret: string;
}

async function create(path: string, events = "*", url = `${receiver.url}${path}`): Promise<Endpoint> {
  const { stdout } = await runCommand(installation, 0, [
    "webhooks",
    "create",
    "--account",
    "acme",
    url,
    "--events",
    events,
    "--json",
  ]);
  return JSON.parse(stdout) as Endpoint;
}

const webhooks = async (...arguments_: readonly string[]): Promise<string> =>
  (await runCommand(installation, 0, ["webhooks", ...arguments_])).stdout;

async function itemsOf(...arguments_: readonly string[]): Promise<readonly any[]> {
  return JSON.parse(await webhooks(...arguments_, "--json")).items;
}

const shown = async (id: string): Promise<any> => JSON.parse(await webhooks("show", id, "--json"));

async function attemptsOf({ id }: Endpoint, eventId: string): Promise<readonly any[]> {
  return JSON.parse(await webhooks("delivery", id, eventId, "--json")).attempts;
}

/** The id of the event. */
async function ping({ id }: Endpoint): Promise<string> {
  const eventId = /msg_\w+/.exec(await webhooks("ping", id))?.[0];
  assert.ok(eventId);
  return eventId;
}

const typesAt = (path: string): readonly string[] => receiver.at(path).map(({ event }) => event.type);

test("what happens to an account reaches its endpoints by what they subscribe to, signed, as the API shows it", async () => {
  const all = await create("/all");
  await create("/sessions", "credential_session.*");
  const credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  const { body: run } = await caller.post("/blueprints/ledger/trigger", { credential_id: credential });
  const { body: status } = await caller.waitForRun(run.id);
  assert.equal(status.status, "completed");
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 204);

  const wanted = ["credential.deleted", "credential_session.completed", "run.completed", "run.started"];
  await until("all events have come", () => receiver.at("/all").length >= wanted.length);
  assert.deepEqual([...typesAt("/all")].toSorted(), wanted);
  assert.deepEqual(typesAt("/sessions"), ["credential_session.completed"]);
  for (const delivery of receiver.at("/all")) {
    assert.ok(isSignedBy(all.secret, delivery), delivery.event.type);
    assert.match(delivery.id, /^msg_[0-9a-f]{32}$/);
    assert.deepEqual(Object.keys(delivery.event), ["type", "timestamp", "data"]);
    assert.ok(Math.abs(Number(delivery.headers["webhook-timestamp"]) - Date.now() / 1_000) < 60);
  }
  const [completed] = receiver.at("/all").filter(({ event }) => event.type === "run.completed");
  assert.deepEqual(completed?.event.data, status);
  const [session] = receiver.at("/sessions");
  const { body: sessionNow } = await caller.get(`/credential-sessions/${session?.event.data.id}`);
  assert.deepEqual(session?.event.data, sessionNow);
  await until("the log has the answers", async () =>
    (await itemsOf("deliveries", all.id)).every(
      ({ state, last_status: last }) => state === "delivered" && last === 204,
    ),
  );
});

test("a session's event has the references that its caller has given", async () => {
  await create("/references", "credential_session.*");
  const asked = { strategy_id: "strat_ledger", metadata: { customer: "c-17" } };
  const { body: session } = await caller.post("/credential-sessions", asked);
  await submitHostedForm(session.hosted_url, LEDGER_LOGIN);
  await until("its event has come", () => receiver.at("/references").length > 0);
  const [data] = receiver.at("/references").map(({ event }) => event.data);
  assert.deepEqual(data, (await caller.get(`/credential-sessions/${session.id}`)).body);
  assert.deepEqual(data?.["metadata"], asked.metadata);
});

test("an account without endpoints writes no event", async () => {
  const { body: run } = await caller.post("/blueprints/open-list/trigger", {});
  await caller.waitForRun(run.id);
  assert.deepEqual(await installation.database.db.query("select type from webhook_event"), []);
});

test("an event exists exactly when its effect does: a transaction that is rolled back leaves none", async () => {
  const { id } = await create("/rolled-back");
  await runCommand(installation, 0, ["webhooks", "disable", id]);
  const other = await create("/other", "run.*");
  const { body: run } = await caller.post("/blueprints/open-list/trigger", {});
  await caller.waitForRun(run.id);
  const { db } = installation.database;
  const total = async (): Promise<number> =>
    (await db.query(`select 1 from webhook_event where type = 'run.purged'`)).length;
  const undone = db.transaction(async (tx) => {
    await tx.query(`update run set purged_at = app_now() where id = $1`, [run.id]);
    assert.equal((await tx.query(`select 1 from webhook_event where type = 'run.purged'`)).length, 1);
    throw new Error("undone");
  });
  await assert.rejects(undone, /undone/);
  assert.equal(await total(), 0);
  await until("its end has come", () => typesAt("/other").includes("run.completed"));
  assert.deepEqual(typesAt("/rolled-back"), [], `${id} is disabled, ${other.id} is not`);
});

test("a failed delivery comes again under its id, later each time; Retry-After is obeyed", async () => {
  const statuses = [500, 503, 200];
  answers.set("/fails", () => {
    const status = statuses.shift() ?? 200;
    return { status, headers: status === 503 ? { "retry-after": "7200" } : {}, body: `answer ${status}` };
  });
  const endpoint = await create("/fails");
  const eventId = await ping(endpoint);
  const received = (): number => receiver.at("/fails").length;
  const next = async (): Promise<any> => (await itemsOf("deliveries", endpoint.id))[0];
  await until("the first attempt", async () => (await next()).last_status === 500);
  const inMs = ({ next_attempt_at: at }: { next_attempt_at: string }, moved: number): number =>
    Date.parse(at) - Date.now() - moved;
  assert.ok(inMs(await next(), 0) < 6_000);
  await moveClock(installation.database.db, "10 seconds");
  await until("the second attempt", async () => (await next()).last_status === 503);
  const waitMs = inMs(await next(), 10_000);
  assert.ok(waitMs > 7_000_000 && waitMs < 7_201_000, `${waitMs}`);
  await moveClock(installation.database.db, "3 hours");
  await until("it is delivered", async () => (await next()).state === "delivered");
  assert.equal(received(), 3);
  assert.deepEqual(new Set(receiver.at("/fails").map(({ id }) => id)), new Set([eventId]));
  const attempts = await attemptsOf(endpoint, eventId);
  assert.deepEqual(
    attempts.map(({ number, status, answer }) => [number, status, answer]),
    [
      [1, 500, "answer 500"],
      [2, 503, "answer 503"],
      [3, 200, "answer 200"],
    ],
  );
  // All signatures are of the time of their attempt.
  assert.ok(receiver.at("/fails").every((delivery) => isSignedBy(endpoint.secret, delivery)));
});

test("410 disables an endpoint, and five days of failures do; its neighbours and the log are told", async () => {
  answers.set("/gone", () => ({ status: 410 }));
  answers.set("/dead", () => ({ status: 500 }));
  const gone = await create("/gone", "run.*");
  const dead = await create("/dead", "run.*");
  await create("/neighbour", "webhook.*");
  await ping(gone);
  const stateOf = async ({ id }: Endpoint): Promise<any> => await shown(id);
  await until("the first is disabled", async () => (await stateOf(gone)).disabled_reason === "gone");
  await ping(dead);
  await until("the second is failing", async () => (await stateOf(dead)).failing_since !== null);
  await moveClock(installation.database.db, "4 days");
  await until("it is tried again", () => receiver.at("/dead").length === 2);
  assert.equal((await stateOf(dead)).disabled_reason, null);
  await moveClock(installation.database.db, "6 days");
  await until("the second is disabled", async () => (await stateOf(dead)).disabled_reason === "failing");
  await until("the neighbour knows", () => receiver.at("/neighbour").length === 2);
  assert.deepEqual(
    receiver.at("/neighbour").map(({ event }) => [event.type, event.data]),
    [
      ["webhook.disabled", { id: gone.id, reason: "gone" }],
      ["webhook.disabled", { id: dead.id, reason: "failing" }],
    ],
  );
  assert.match(installation.logs(), /"alarm":"webhook_disabled"/);
  const refused = await runCommand(installation, 1, ["webhooks", "ping", dead.id]);
  assert.match(refused.stderr, /is disabled. Enable it first: latchkey webhooks enable/);
  await webhooks("enable", dead.id);
  assert.equal((await stateOf(dead)).failing_since, null);
});

test("for the overlap of a rotation both secrets sign, afterwards the new one alone", async () => {
  const { id, secret: old } = await create("/rotated");
  const { secret: fresh } = JSON.parse(await webhooks("rotate", id, "--overlap", "1h", "--json")) as Endpoint;
  assert.notEqual(fresh, old);
  const signers = (delivery: Received | undefined): readonly boolean[] =>
    [old, fresh].map((secret) => delivery !== undefined && isSignedBy(secret, delivery));
  await ping({ id, secret: fresh });
  await until("the first has come", () => receiver.at("/rotated").length === 1);
  assert.deepEqual(signers(receiver.at("/rotated")[0]), [true, true]);
  await moveClock(installation.database.db, "61 minutes");
  await ping({ id, secret: fresh });
  await until("the second has come", () => receiver.at("/rotated").length === 2);
  assert.deepEqual(signers(receiver.at("/rotated")[1]), [false, true]);
});

test("a hanging, a dead and a failing endpoint take nothing from a good one", async () => {
  answers.set("/hangs", () => null);
  answers.set("/broken", () => ({ status: 500 }));
  const hangs = await create("/hangs", "run.*");
  const dead = await create("/", "run.*", "http://127.0.0.1:9/");
  const broken = await create("/broken", "run.*");
  const good = await create("/good", "run.*");
  for (const endpoint of [hangs, dead, broken]) for (let n = 0; n < 3; n++) await ping(endpoint);
  await until("the hanging one has its deliveries", () => receiver.at("/hangs").length > 0);
  for (let n = 0; n < 3; n++) await ping(good);
  await until("the good one has all", () => receiver.at("/good").length === 3);
  // The hanging one has not even failed yet: nobody has waited for it.
  assert.deepEqual(await attemptsOf(hangs, receiver.at("/hangs")[0]?.id ?? ""), []);
});

test("an event is sent again on request, and what was given up since a time", async () => {
  let status = 400;
  answers.set("/again", () => ({ status }));
  const endpoint = await create("/again");
  const eventId = await ping(endpoint);
  const { db } = installation.database;
  const state = async (): Promise<string> => (await itemsOf("deliveries", endpoint.id))[0].state;
  await until("the first attempt", async () => (await attemptsOf(endpoint, eventId)).length === 1);
  assert.equal(await state(), "pending");
  // As if it were the tenth that comes now.
  await db.query("update webhook_delivery set tries = 9, due_at = app_now() where due_at is not null");
  await until("the last attempt", async () => (await attemptsOf(endpoint, eventId)).length === 2);
  assert.equal(await state(), "failed");
  status = 204;
  assert.equal(
    await webhooks("resend", endpoint.id, "--failed-since", "2026-01-01"),
    "1 event will be sent again.\n",
  );
  await until("it is delivered", async () => (await state()) === "delivered");
  await webhooks("resend", endpoint.id, eventId);
  await until("it has come again", () => receiver.at("/again").length === 4);
  assert.deepEqual(new Set(receiver.at("/again").map(({ id }) => id)), new Set([eventId]));
  const unknown = await runCommand(installation, 1, ["webhooks", "resend", endpoint.id, "msg_unknown"]);
  assert.match(unknown.stderr, /has no delivery of the event "msg_unknown"/);
});

test("after 30 days an event is deleted with its deliveries and attempts, and no younger one is", async () => {
  const endpoint = await create("/old");
  const { db } = installation.database;
  const old = await ping(endpoint);
  await until("it is delivered", async () => (await attemptsOf(endpoint, old)).length === 1);
  await moveClock(db, "29 days");
  const young = await ping(endpoint);
  await until("it is delivered", async () => (await attemptsOf(endpoint, young)).length === 1);
  const left = async (): Promise<readonly unknown[]> =>
    await db.query(
      `select event.id, number from webhook_event event left join webhook_delivery delivery on delivery.event_id = event.id
         left join webhook_attempt attempt on attempt.event_id = event.id`,
    );
  assert.equal(await deleteOldEvents(db, limits.webhookKeptMs, 10), 0);
  assert.equal((await left()).length, 2);
  await moveClock(db, "31 days");
  assert.equal(await deleteOldEvents(db, limits.webhookKeptMs, 10), 1);
  assert.deepEqual(await left(), [{ id: young, number: 1 }]);
  assert.equal((await db.query("select 1 from webhook_delivery")).length, 1);
  assert.equal((await db.query("select 1 from webhook_attempt")).length, 1);
});

test("bad endpoints are refused with the remedy, and nothing is created", async () => {
  const refused = async (url: string, events: string, account = "acme"): Promise<string> =>
    (await runCommand(installation, 1, ["webhooks", "create", "--account", account, url, "--events", events]))
      .stderr;
  assert.match(await refused("http://example.com", "*"), /must begin with https:\/\//);
  assert.match(
    await refused("https://example.com", "run.done"),
    /There is no event "run.done".*run\.completed/,
  );
  assert.match(await refused("https://example.com", "*", "nobody"), /There is no account "nobody"/);
  assert.deepEqual(await itemsOf("list"), []);
});

test("the JSON of the commands has the fields of the held surface", async () => {
  const made = await create("/held");
  const eventId = await ping(made);
  await until("it is delivered", async () => (await attemptsOf(made, eventId)).length === 1);
  const json = async (...arguments_: readonly string[]): Promise<object> =>
    JSON.parse(await webhooks(...arguments_, "--json"));
  expectHeldJson("webhooks create", made);
  expectHeldJson("webhooks list", await json("list"));
  expectHeldJson("webhooks show", await json("show", made.id));
  expectHeldJson("webhooks deliveries", await json("deliveries", made.id));
  expectHeldJson("webhooks delivery", await json("delivery", made.id, eventId));
  expectHeldJson("webhooks rotate", await json("rotate", made.id));
});

test("changes of endpoints are in the audit log, and no secret is anywhere but sealed", async () => {
  const { id, secret } = await create("/audited");
  await webhooks("disable", id);
  await webhooks("enable", id);
  const rotated = JSON.parse(await webhooks("rotate", id, "--json")) as Endpoint;
  await ping({ id, secret });
  const { db } = installation.database;
  const names = await db.query<{ action: string }>(
    `select action from audit_entry where subject_id = $1 order by occurred_at, id`,
    [id],
  );
  assert.deepEqual(
    names.map(({ action }) => action),
    ["webhook.create", "webhook.disable", "webhook.enable", "webhook.rotate", "webhook.ping"],
  );
  const kept = JSON.stringify([
    await db.query("select * from webhook_endpoint"),
    await db.query("select id, account_id, endpoint_id, encode(sealed, 'escape') from webhook_secret"),
    await db.query("select * from audit_entry"),
    installation.logs(),
  ]);
  for (const value of [secret, rotated.secret]) assert.ok(!kept.includes(value.slice("whsec_".length)));
  // No entry, no effect.
  await refuseEntries(db, true);
  for (const change of ["disable", "delete", "rotate", "ping"])
    await runCommand(installation, 1, ["webhooks", change, id]);
  await refuseEntries(db, false);
  assert.equal((await shown(id)).disabled_at, null);
  assert.equal((await db.query("select 1 from webhook_secret")).length, 2);
  assert.equal((await db.query("select 1 from webhook_event")).length, 1);
  await webhooks("delete", id);
  assert.deepEqual(await db.query("select 1 from webhook_secret"), []);
});
