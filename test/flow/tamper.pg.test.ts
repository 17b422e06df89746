import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { must } from "#lib/assert.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { install } from "../service.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget, type Target } from "./target.ts";

/**
 * docs/decisions/0013: somebody who can write to the database swaps, cuts, changes and puts back sealed bytes. Every time
 * the run fails, with the one sentence for callers, and the target hears nothing.
 */
const GONE_WRONG = {
  code: "execution_failed",
  message: "The run did not complete. The operator's dashboard shows why.",
};

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let caller: Caller;
let credential: string;
let other: string;

before(async () => {
  target = await startTarget(ledger);
  installation = await install();
  await installation.apply(...ledgerDocuments(target.url, { cache: "15m" }));
  caller = openCaller((await installation.serve()).url, await installation.createKey("acme"));
  credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  other = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  for (const id of [credential, other]) assert.equal((await run(id)).status, "completed");
  await query("create table kept_credential as select * from credential");
  await query("create table kept_login as select * from login_session");
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

beforeEach(async () => {
  await query("delete from login_session");
  await query(
    "update credential set sealed = kept.sealed, kid = kept.kid from kept_credential kept where kept.id = credential.id",
  );
  await query("insert into login_session select * from kept_login");
  target.reset();
});

async function query<T>(text: string, values: readonly unknown[] = []): Promise<T[]> {
  return await installation.database.db.query<T>(text, values);
}

async function run(id: string): Promise<any> {
  const { status, body } = await caller.post("/blueprints/ledger/trigger", { credential_id: id });
  assert.equal(status, 202);
  return (await caller.waitForRun(body.id)).body;
}

async function assertRefused(): Promise<void> {
  const ended = await run(credential);
  assert.equal(ended.status, "failed");
  assert.deepEqual(ended.error, GONE_WRONG);
  assert.equal(ended.started_at, null, "it never came as far as running");
  assert.equal(target.requests.length, 0, "the target heard of it");
  const [row] = await query<{ kind: string; detail: string }>(
    "select error_kind as kind, error_detail as detail from run where id = $1",
    [ended.id],
  );
  assert.equal(row?.kind, "vault");
  assert.match(must(row, "run").detail, /can't be opened|does not hold master key/);
}

test("as it was, it works with the cached login: what follows fails by what was changed", async () => {
  assert.equal((await run(credential)).status, "completed");
  assert.ok(!target.requests.some(({ path }) => path === "/login"));
  assert.ok(target.requests.length > 0);
});

/** What an attacker with the database can do to a row of either table; `id` is $1, the other row's $2. */
const CHANGES: Readonly<Record<string, (table: string, key: string) => string>> = {
  "the other row's bytes": (table, key) =>
    `update ${table} set sealed = (select sealed from ${table} where ${key} = $2) where ${key} = $1`,
  "a bit of the ciphertext": (table, key) =>
    `update ${table} set sealed = set_byte(sealed, length(sealed) / 2, get_byte(sealed, length(sealed) / 2) # 1) where ${key} = $1 and $2 <> ''`,
  "the first byte": (table, key) =>
    `update ${table} set sealed = set_byte(sealed, 0, get_byte(sealed, 0) # 1) where ${key} = $1 and $2 <> ''`,
  "cut off by one byte": (table, key) =>
    `update ${table} set sealed = substr(sealed, 1, length(sealed) - 1) where ${key} = $1 and $2 <> ''`,
  "cut in half": (table, key) =>
    `update ${table} set sealed = substr(sealed, 1, length(sealed) / 2) where ${key} = $1 and $2 <> ''`,
  "nothing left": (table, key) => `update ${table} set sealed = '' where ${key} = $1 and $2 <> ''`,
  "a byte more": (table, key) =>
    `update ${table} set sealed = sealed || '\\x20' where ${key} = $1 and $2 <> ''`,
  "another tag": (table, key) =>
    `update ${table} set sealed = convert_to(jsonb_set(convert_from(sealed, 'UTF8')::jsonb, '{tag}', '"AAAAAAAAAAAAAAAAAAAAAA"')::text, 'UTF8')
     where ${key} = $1 and $2 <> ''`,
  "a sentinel's bytes": (table, key) =>
    `update ${table} set sealed = (select sentinel from vault_key limit 1) where ${key} = $1 and $2 <> ''`,
};

for (const [table, key] of [
  ["credential", "id"],
  ["login_session", "credential_id"],
] as const) {
  for (const [what, change] of Object.entries(CHANGES)) {
    test(`${table}: ${what}`, async () => {
      await query(change(table, key), [credential, other]);
      await assertRefused();
    });
  }
}

test("bytes of the other table: a cached login is no credential, and a credential no cached login", async () => {
  await query(
    "update credential set sealed = (select sealed from login_session where credential_id = $1) where id = $1",
    [credential],
  );
  await assertRefused();
  await query(
    "update credential set sealed = (select sealed from kept_credential where id = $1) where id = $1",
    [credential],
  );
  await query(
    "update login_session set sealed = (select sealed from credential where id = $1) where credential_id = $1",
    [credential],
  );
  await assertRefused();
});

test("an earlier login of the same credential, put back", async () => {
  await query("delete from login_session where credential_id = $1", [credential]);
  assert.equal((await run(credential)).status, "completed");
  assert.ok(
    target.requests.some(({ path }) => path === "/login"),
    "it has logged in anew",
  );
  target.reset();
  await query(
    `update login_session set sealed = kept.sealed, kid = kept.kid from kept_login kept
     where kept.credential_id = login_session.credential_id and login_session.credential_id = $1`,
    [credential],
  );
  await assertRefused();
});

test("a cached login that was given a longer life", async () => {
  await query(
    "update login_session set expires_at = expires_at + interval '1 hour' where credential_id = $1",
    [credential],
  );
  await assertRefused();
});

test("a row that moved to another account or strategy takes nothing with it", async () => {
  await installation.apply(
    "account: globex",
    `strategy: strat_globex
account: globex
hosts: [${target.url}]
fields: [{ key: username, type: text, required: true }, { key: password, type: password, required: true }]
login: { type: basic, username: username, password: password }`,
    `blueprint: spy
account: globex
credentials: { main: { strategy: strat_globex } }
nodes:
  - { id: list, type: http, credential: main, request: { method: GET, url: /first }, records: items }
  - { id: out, type: output, refKey: list, from: list }`,
  );
  const globex = openCaller(new URL(await serviceUrl()).origin, await installation.createKey("globex"));
  const own = await connect(globex, "strat_globex", LEDGER_LOGIN);
  await query("update credential set sealed = (select sealed from credential where id = $2) where id = $1", [
    own,
    credential,
  ]);
  const { body } = await globex.post("/blueprints/spy/trigger", { credential_id: own });
  assert.equal((await globex.waitForRun(body.id)).body.status, "failed");
  assert.equal(target.requests.length, 0);
});

test("a key that this worker does not hold is named for the operator", async () => {
  // Another machine has added and promoted it, with a keyset that this one was never given.
  await query(
    `insert into vault_key (kid, public_jwk, sentinel, is_primary) values ('foreign-kid', '{}', '\\x00', false)`,
  );
  await query("update credential set kid = 'foreign-kid', sealed = sealed || '\\x20' where id = $1", [
    credential,
  ]);
  await assertRefused();
  const [row] = await query<{ detail: string }>(
    "select error_detail as detail from run order by created_at desc, id desc limit 1",
  );
  assert.match(row?.detail ?? "", /This worker does not hold master key foreign-kid/);
});

async function serviceUrl(): Promise<string> {
  const { body } = await caller.post("/credential-sessions", { strategy_id: "strat_ledger" });
  return body.hosted_url;
}
