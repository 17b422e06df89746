// docs/decisions/0007, on triggers through HTTP: one bad row never fails its neighbours, and nothing that one request
// waits for holds up another. What a key promises alone (cases.pg.test.ts), it promises in a group.
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { KeyRecord } from "#db/keyed-inserts.ts";
import { insertRunTogether, type NewRun } from "#db/runs/new-runs.ts";
import { newId } from "#lib/new-id.ts";
import { until } from "../eventually.ts";
import { openCaller, submitHostedForm, type ApiAnswer, type Caller } from "../caller.ts";
import type { ServiceProcess } from "../service.ts";
import { assertFresh, assertReplay, holdKey, keyed, TRIGGER } from "./exchange.ts";
import { installIdle, plantCredentials, runsNamed, sessionsNamed } from "./fixture.ts";

let installation: Awaited<ReturnType<typeof installIdle>>;
let services: ServiceProcess[];
let caller: Caller;

before(async () => {
  installation = await installIdle();
  services = [await installation.serveProcess({}, ["api"]), await installation.serveProcess({}, ["api"])];
  caller = openCaller(services[0]?.url ?? "", await installation.createKey("acme"));
});
after(() => installation?.[Symbol.asyncDispose]());

const trigger = async (name: string, key?: string, body: object = {}): Promise<ApiAnswer> =>
  await caller.post(TRIGGER, { a: "[]", run_name: name, ...body }, key === undefined ? {} : keyed(key));

/** Many triggers of one name at once, half of them with a key of their own. */
const neighbours = (name: string, count = 40): Promise<ApiAnswer>[] =>
  Array.from(
    { length: count },
    async (_, index) => await trigger(name, index % 2 ? `${name}-${index}` : undefined),
  );

/** The service's statements that wait for a lock. A group's begins with a comment that says what it is. */
async function waitsForLocks(): Promise<readonly { inGroup: boolean }[]> {
  return await installation.database.db.query(
    `select query like '--%' as "inGroup" from pg_stat_activity where datname = current_database() and application_name = 'latchkey' and wait_event_type = 'Lock'`,
  );
}

/** Each statement takes a while, so that requests come in meanwhile: how busy the machine is does not decide how many share one. */
async function whileSlow<T>(table: string, send: () => readonly Promise<T>[]): Promise<readonly T[]> {
  const { db } = installation.database;
  await db.query(
    `create function linger() returns trigger language plpgsql as $$ begin perform pg_sleep(0.1); return null; end $$;
     create trigger linger before insert on ${table} for each statement execute function linger()`,
  );
  const answers = await Promise.all(send());
  await db.query(`drop trigger linger on ${table}; drop function linger`);
  return answers;
}

test("concurrent triggers share transactions, and each has its own run", async () => {
  const answers = await whileSlow("run", () => neighbours("shared", 120));
  assert.equal(new Set(answers.map(({ body }) => body.id)).size, 120);
  const [row] = await installation.database.db.query<{ runs: number; transactions: number }>(
    `select count(*) as runs, count(distinct xmin::text) as transactions from run where name = 'shared'`,
  );
  assert.equal(row?.runs, 120);
  assert.ok(row.transactions < 60, `${row.transactions} transactions`);
});

test("a row that the database refuses fails alone: its neighbours have their runs, it has neither run nor record", async () => {
  const { db } = installation.database;
  await db.query(
    `create function refuse_poison() returns trigger language plpgsql as
       $$ begin if new.name = 'poison' then raise 'refused for this test'; end if; return new; end $$;
     create trigger refuse_poison before insert on run for each row execute function refuse_poison()`,
  );
  const good = neighbours("healthy");
  const bad = [trigger("poison"), trigger("poison", "poison-key")];
  for (const answer of await Promise.all(good)) assertFresh(answer, 202);
  for (const answer of await Promise.all(bad)) assertFresh(answer, 500);
  assert.equal(await runsNamed(installation, "healthy"), 40);
  await db.query("drop trigger refuse_poison on run; drop function refuse_poison");
  assertFresh(await trigger("poison", "poison-key"), 202);
  assert.equal(await runsNamed(installation, "poison"), 1);
});

const createSession = async (name: string, key?: string): Promise<ApiAnswer> =>
  await caller.post(
    "/credential-sessions",
    { strategy_id: "strat_acme", name },
    key === undefined ? {} : keyed(key),
  );

test("concurrent sessions share transactions, each with its entry in the audit log and its own key", async () => {
  const keyOf = (index: number): string | undefined => (index % 2 ? `shared-session-${index}` : undefined);
  const answers = await whileSlow("credential_session", () =>
    Array.from({ length: 120 }, async (_, index) => await createSession("shared", keyOf(index))),
  );
  for (const answer of answers) assertFresh(answer, 201);
  const [row] = await installation.database.db.query<{
    sessions: number;
    transactions: number;
    recorded: number;
  }>(
    `select count(*) as sessions, count(distinct session.xmin::text) as transactions,
       count(*) filter (where entry.xmin = session.xmin and entry.occurred_at = session.created_at) as recorded
     from credential_session session left join audit_entry entry on entry.subject_id = session.id and entry.action = 'session.create'
     where session.id = any($1)`,
    [answers.map(({ body }) => body.id)],
  );
  assert.deepEqual([row?.sessions, row?.recorded], [120, 120]);
  assert.ok((row?.transactions ?? 120) < 60, `${row?.transactions} transactions`);
  const again = await Promise.all(
    answers.map(async (_, index) => await createSession("shared", keyOf(index))),
  );
  for (const [index, answer] of again.entries()) {
    if (keyOf(index) === undefined) assertFresh(answer, 201);
    else assertReplay(answer, answers[index] as ApiAnswer);
  }
});

test("a session that the database refuses fails alone: its neighbours are made, it has neither row nor record", async () => {
  const { db } = installation.database;
  await db.query(
    `create function refuse_poison() returns trigger language plpgsql as
       $$ begin if new.name = 'poison' then raise 'refused for this test'; end if; return new; end $$;
     create trigger refuse_poison before insert on credential_session for each row execute function refuse_poison()`,
  );
  const names = async (): Promise<readonly number[]> =>
    await Promise.all(["healthy", "poison"].map(async (name) => await sessionsNamed(installation, name)));
  const good = Array.from(
    { length: 20 },
    async (_, index) => await createSession("healthy", `healthy-session-${index}`),
  );
  const bad = [createSession("poison"), createSession("poison", "poison-session")];
  for (const answer of await Promise.all(good)) assertFresh(answer, 201);
  for (const answer of await Promise.all(bad)) assertFresh(answer, 500);
  assert.deepEqual(await names(), [20, 0]);
  await db.query("drop trigger refuse_poison on credential_session; drop function refuse_poison");
  assertFresh(await createSession("poison", "poison-session"), 201);
  assert.deepEqual(await names(), [20, 1]);
});

test("concurrent submits share transactions, and of two submits of one session one makes its credential", async () => {
  const { db } = installation.database;
  const sessions = await Promise.all(
    Array.from({ length: 20 }, async () => (await createSession("submitted")).body),
  );
  const pages = [...sessions, ...sessions].map(({ hosted_url: url }) => url);
  const answers = await whileSlow("credential", () =>
    pages.map(async (url) => (await submitHostedForm(url, { token: "t" })).status),
  );
  // The second one is told that the form has been submitted.
  assert.deepEqual([...new Set(answers)], [200]);
  const ids = sessions.map(({ id }) => id);
  const [row] = await db.query<{ credentials: number; transactions: number; recorded: number }>(
    `select count(*) as credentials, count(distinct credential.xmin::text) as transactions,
       count(*) filter (where entry.xmin = credential.xmin and session.xmin = credential.xmin) as recorded
     from credential_session session join credential on credential.id = session.credential_id and credential.session_id = session.id
       left join audit_entry entry on entry.subject_id = credential.id and entry.action = 'credential.submit'
     where session.id = any($1) and session.status = 'completed'`,
    [ids],
  );
  assert.deepEqual([row?.credentials, row?.recorded], [20, 20]);
  assert.ok((row?.transactions ?? 20) < 10, `${row?.transactions} transactions`);
  const [made] = await db.query<{ count: number }>(
    "select count(*) as count from credential where session_id = any($1)",
    [ids],
  );
  assert.equal(made?.count, 20);
});

test("concurrent deletes share transactions, each with its entry and its own key; of two for one credential one finds it", async () => {
  const { db } = installation.database;
  const ids = await plantCredentials(installation, 40);
  const keyOf = (index: number): Record<string, string> => (index % 2 ? keyed(`shared-delete-${index}`) : {});
  const remove = async (id: string, headers: Record<string, string> = {}): Promise<ApiAnswer> =>
    await caller.delete(`/credentials/${id}`, headers);
  const [used = ""] = ids;
  const waiting = await caller.post("/blueprints/secured/trigger", { credential_id: used });
  const answers = await whileSlow("audit_entry", () => [
    ...ids.map(async (id, index) => await remove(id, keyOf(index))),
    ...ids.filter((_, index) => index % 8 === 0).map(async (id) => await remove(id)),
  ]);
  const statuses = answers.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 204).length, ids.length, statuses.join());
  assert.equal(statuses.filter((status) => status === 404).length, 5, statuses.join());
  const [row] = await db.query<{ entries: number; transactions: number; left: number }>(
    `select count(*) as entries, count(distinct xmin::text) as transactions, (select count(*) from credential where id = any($1)) as left
     from audit_entry where action = 'credential.delete' and subject_id = any($1)`,
    [ids],
  );
  assert.deepEqual([row?.entries, row?.left], [40, 0]);
  assert.ok((row?.transactions ?? 40) < 20, `${row?.transactions} transactions`);
  const tombstones = await readFile(join(installation.dataFolder, "tombstones.ndjson"), "utf8");
  for (const id of ids) assert.ok(tombstones.includes(`"deleted":"${id}"`), id);
  const { body: failed } = await caller.get(`/blueprint-runs/${waiting.body.id}/status`);
  assert.equal(failed.status, "failed", "its run had not begun");
  for (const [index, id] of ids.entries())
    if (index % 2) assertReplay(await remove(id, keyOf(index)), answers[index] as ApiAnswer);
});

test("keys that another process holds keep nobody else waiting", async () => {
  // More than there are groups under way at once: each would hold one up.
  const keys = ["held-1", "held-2", "held-3"];
  const held = await Promise.all(keys.map(async (key) => await holdKey(installation, key)));
  const waiting = keys.map(async (key) => await trigger("held", key));
  const isAlone = async (): Promise<boolean> => {
    const locked = await waitsForLocks();
    // No group waits for a key for longer than it takes to see that it is held.
    return locked.length === keys.length && locked.every(({ inGroup }) => !inGroup);
  };
  await until("no group waits", isAlone);
  for (const answer of await Promise.all(neighbours("beside-held"))) assertFresh(answer, 202);
  assert.equal(await Promise.race([...waiting, sleep(200)]), undefined, "they wait");
  for (const each of held) await each.release();
  for (const answer of await Promise.all(waiting)) assertFresh(answer, 202);
  assert.equal(await runsNamed(installation, "held"), 3);
});

test("of two claims of one key in one statement one makes its run; the statement itself sees to it", async () => {
  const { db } = installation.database;
  type Planted = Pick<NewRun, "accountId" | "blueprintId" | "blueprintVersion" | "apiKeyId">;
  const first = await trigger("of-one-key");
  const [planted] = await db.query<Planted>(
    `select account_id as "accountId", blueprint_id as "blueprintId", blueprint_version as "blueprintVersion", api_key_id as "apiKeyId"
     from run where id = $1`,
    [first.body.id],
  );
  const newRun = (): NewRun => ({
    ...(planted as Planted),
    id: newId("run_"),
    runKey: randomUUID(),
    againOf: null,
    operatorId: null,
    name: "of-one-key",
    metadata: "{}",
    ignoredKeys: [],
    timeoutMs: 60_000,
    retentionMs: 60_000,
    queue: null,
    group: null,
    traceparent: null,
    scheduleId: null,
    credentials: [],
    inputs: [],
  });
  const record: KeyRecord = {
    keyHash: randomBytes(32),
    fingerprint: randomBytes(32),
    bytesFingerprint: null,
    windowMs: 60_000,
    status: 202,
    body: Buffer.from("{}"),
    tokenSessionId: null,
    tokenAt: null,
  };
  const claims = [newRun(), newRun(), newRun()].map(async (run) => await insertRunTogether(db, run, record));
  const keyless = [newRun(), newRun()].map(async (run) => await insertRunTogether(db, run, null));
  assert.equal((await Promise.all(claims)).filter(Boolean).length, 1);
  assert.deepEqual(await Promise.all(keyless), [true, true]);
  assert.equal(await runsNamed(installation, "of-one-key"), 1 + 1 + 2);
});

test("a credential that is being deleted refuses its own trigger only, once it is gone", async () => {
  const [going = "", staying = ""] = await plantCredentials(installation, 2);
  const secured = async (id: string, key: string): Promise<ApiAnswer> =>
    await caller.post("/blueprints/secured/trigger", { credential_id: id, run_name: key }, keyed(key));
  const client = await installation.database.db.pool.connect();
  await client.query("begin");
  await client.query("delete from credential where id = $1", [going]);
  const waiting = secured(going, "of-the-deleted");
  const others = await Promise.all(
    Array.from({ length: 10 }, async (_, index) => await secured(staying, `of-the-kept-${index}`)),
  );
  for (const answer of others) assertFresh(answer, 202);
  assert.equal(await Promise.race([waiting, sleep(200)]), undefined, "it waits");
  await client.query("commit");
  client.release();
  const refused = await waiting;
  assertFresh(refused, 422);
  assert.equal(refused.body.error.details[0].field, "credential_id");
  assert.equal(await runsNamed(installation, "of-the-deleted"), 0);
  const [used] = await installation.database.db.query<{ count: number }>(
    "select count(*) as count from run_credential where credential_id = $1",
    [staying],
  );
  assert.equal(used?.count, 10);
});

test("refused, foreign, duplicate and fresh requests in the same groups, over two processes: each as if it were alone", async () => {
  const stranger = await installation.createKey("globex");
  const ours = await installation.createKey("acme");
  const urls = services.map(({ url }) => url);
  const send = async (apiKey: string, key: string, turn: number, body: object): Promise<ApiAnswer> =>
    await openCaller(urls[turn % urls.length] ?? "", apiKey).post(TRIGGER, body, keyed(key));
  const keys = Array.from({ length: 30 }, (_, index) => `mixed-${index}`);
  const sent = keys.map(async (key) => ({
    own: await Promise.all([0, 1, 2].map(async (turn) => await send(ours, key, turn, { run_name: key }))),
    foreign: await send(stranger, key, 0, { run_name: `${key}-foreign` }),
  }));
  const refused = keys.map(
    async (key) => await send(ours, `${key}-refused`, 0, { credential_id: "nonsense" }),
  );
  for (const [index, { own, foreign }] of (await Promise.all(sent)).entries()) {
    const key = keys[index] ?? "";
    const fresh = own.filter((answer) => !answer.headers.has("idempotent-replay"));
    assert.equal(fresh.length, 1, key);
    assertFresh(fresh[0] as ApiAnswer, 202);
    for (const answer of own) if (answer !== fresh[0]) assertReplay(answer, fresh[0] as ApiAnswer);
    assertFresh(foreign, 202);
    assert.equal(await runsNamed(installation, key), 1);
    assert.equal(await runsNamed(installation, `${key}-foreign`), 1);
  }
  for (const answer of await Promise.all(refused)) assertFresh(answer, 422);
});

test("a new version of a Blueprint, and its retirement, count for the next trigger", async () => {
  const versionOf = async (answer: ApiAnswer): Promise<number | undefined> =>
    (
      await installation.database.db.query<{ version: number }>(
        "select blueprint_version as version from run where id = $1",
        [answer.body.id],
      )
    )[0]?.version;
  const document = (nodes: string): string =>
    `blueprint: changing\naccount: acme\nnodes:\n  - { id: a, type: input, refKey: a }\n${nodes}` +
    `  - { id: rows, type: parse, from: a, format: json }\n  - { id: out, type: output, refKey: out, from: rows }`;
  const start = async (): Promise<ApiAnswer> =>
    await caller.post("/blueprints/changing/trigger", { a: "[]" });
  assertFresh(await start(), 404);
  await installation.apply(document(""));
  assert.equal(await versionOf(await start()), 1);
  await installation.apply(document("  - { id: b, type: input, refKey: b }\n"));
  assert.equal(await versionOf(await start()), 2);
  await installation.apply(`${document("")}\nretired: true`);
  assertFresh(await start(), 404);
});
