// The credentials of before are bound to the origins of their strategies once; from then on one without origins is sent nowhere.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { bindCredentials, CREDENTIAL_PLACES } from "#actions/credentials/bind-credentials.ts";
import { bindingOf, openRow } from "#actions/vault/check-vault.ts";
import { prepareVault } from "#actions/vault/prepare-vault.ts";
import { findSealedOf } from "#db/credentials/credential-binding.ts";
import { listSealed, type SealedRow } from "#db/credentials/sealed-places.ts";

import { originsIn } from "#domain/destination.ts";
import { must } from "#lib/assert.ts";
import { openLog } from "#lib/log.ts";
import { openSigning, readSigningKey } from "#lib/signing.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import type { Keyring } from "#vault/vault.ts";
import { openCaller } from "../caller.ts";
import { blueprint, openBench, type Bench } from "../documents/bench.ts";
import { assertInvariants } from "../invariants.ts";
import type { RunningService } from "../service.ts";

const SECRET = "the-secret-of-bruno-3Lq8";

let bench: Bench;
let vault: Keyring;
let service: RunningService;
/** As they were before this release: a credential with a cached login, and one with tokens. */
let portal: string;
let tokens: string;
const old = new Map<string, SealedRow>();

const read = `- { id: read, type: http, credential: it, request: { url: /items }, records: $ }
- { id: out, type: output, refKey: out, from: read }`;

before(async () => {
  bench = await openBench([
    `strategy: strat_portal
account: acme
hosts: ["{TARGET}"]
fields: [{ key: key, type: password }]
login:
  type: http
  steps: [{ request: { method: POST, url: /login, form: { key: "{{ $credential.key }}" } } }]
  cache: 1h`,
    `strategy: strat_tokens
account: acme
hosts: ["{TARGET}"]
fields: [{ key: user, type: text }, { key: key, type: password }]
login: { type: oauth2, grant: password, client_id: x, token_url: "{TARGET}/token", username: user, password: key }`,
    blueprint("portal", read, "credentials: { it: { strategy: strat_portal } }"),
    blueprint("tokens", read, "credentials: { it: { strategy: strat_tokens } }"),
  ]);
  ({ service } = bench);
  bench.target.on("GET /items", { json: [{ n: 1 }] });
  bench.target.on("POST /login", { headers: { "set-cookie": "session=a-session-of-many-characters" } });
  bench.target.on("POST /token", {
    json: { access_token: "access", token_type: "bearer", expires_in: 3_600 },
  });
  vault = await prepareVault(
    db(),
    await readKeys(openFileSource(join(bench.installation.dataFolder, "master.key"))),
  );
  portal = await bench.connect("strat_portal", { key: SECRET });
  tokens = await bench.connect("strat_tokens", { user: "bruno", key: SECRET });
  assert.deepEqual(await run(portal), ["completed", null, null]);
  assert.deepEqual(await run(tokens), ["completed", null, null]);
  await makeOld();
});
afterEach(async () => await assertInvariants(bench.installation));
after(async () => await bench?.[Symbol.asyncDispose]());

const db = () => bench.installation.database.db;

async function restart(): Promise<void> {
  await service.end();
  service = await bench.installation.serve();
}

async function run(credentialId: string) {
  const caller = openCaller(service.url, bench.key);
  const key = credentialId === portal ? "portal" : "tokens";
  const { body } = await caller.post(`/blueprints/${key}/trigger`, { credential_id: credentialId });
  const { body: ended } = await caller.waitForRun(body.id);
  const [row] = await db().query<{ kind: string | null; detail: string | null }>(
    "select error_kind as kind, error_detail as detail from run where id = $1",
    [body.id],
  );
  return [ended.status as string, row?.kind, row?.detail] as const;
}

/** Every sealed value as an earlier release has sealed it, and an installation that was never bound. */
async function makeOld(): Promise<void> {
  await service.end();
  for (const place of CREDENTIAL_PLACES) {
    for (const row of await listSealed(db(), place, { afterId: "", limit: 100 })) {
      const plain = Buffer.from(must(await openRow(vault, place, row), row.rowId)).toString();
      const value = JSON.parse(plain) as any;
      const before = Array.isArray(value)
        ? value.filter(([key]) => !key.startsWith("@"))
        : { ...value, origins: undefined };
      assert.notEqual(JSON.stringify(before), plain, `the ${place.noun} have origins`);
      const { sealed, kid } = await vault.seal(Buffer.from(JSON.stringify(before)), bindingOf(place, row));
      await put(place.purpose, { ...row, sealed, kid });
      old.set(`${place.purpose} ${row.rowId}`, { ...row, sealed, kid });
    }
  }
  await db().query("update credential set origins = null");
  await forget();
  service = await bench.installation.serve();
}

/** An installation whose credentials were never bound: only the owner of the tables, at the machine's disk, could make it so. */
async function forget(): Promise<void> {
  await db().transaction(async (tx) => {
    await tx.query("set local session_replication_role = replica");
    await tx.query("update installation set credentials_bound_at = null, credentials_bound_mac = null");
    await tx.query("delete from audit_entry where action = 'credential.bind'");
    await tx.query(
      "update audit_entry set sequence = null, hash = null, signature = null where chain = 'installation'",
    );
    await tx.query("delete from audit_chain where chain = 'installation'");
  });
  rmSync(join(bench.installation.dataFolder, "audit-checkpoints.ndjson"), { force: true });
}

const put = async (purpose: string, row: SealedRow): Promise<void> => {
  const sql: Readonly<Record<string, string>> = {
    credential: "update credential set sealed = $2, kid = $3 where id = $1",
    login_session: "update login_session set sealed = $2, kid = $3 where credential_id = $1",
    oauth_token: "update oauth_token set sealed = $2, kid = $3 where credential_id = $1",
  };
  await db().query(must(sql[purpose], purpose), [row.rowId, row.sealed, row.kid]);
};
const putBack = async (purpose: string, id: string): Promise<void> =>
  await put(purpose, must(old.get(`${purpose} ${id}`), purpose));

async function sealedOrigins(): Promise<readonly (readonly [string, readonly string[] | null])[]> {
  const found: [string, readonly string[] | null][] = [];
  for (const place of CREDENTIAL_PLACES)
    for (const row of await listSealed(db(), place, { afterId: "", limit: 100 }))
      found.push([
        place.purpose,
        originsIn(place.purpose, Buffer.from(must(await openRow(vault, place, row), row.rowId)).toString()),
      ]);
  return found;
}

test("the first start binds every value of before, marks it and puts it on record; everything goes on", async () => {
  const here = [bench.target.url];
  assert.deepEqual(await sealedOrigins(), [
    ["credential", here],
    ["credential", here],
    ["login_session", here],
    ["oauth_token", here],
  ]);
  const shown = await db().query("select origins from credential");
  assert.deepEqual(shown, [{ origins: here }, { origins: here }]);
  const entries = await db().query<{ detail: string }>(
    "select detail from audit_entry where action = 'credential.bind'",
  );
  assert.deepEqual(
    entries.map(({ detail }) => JSON.parse(detail)),
    [{ credentials: 2, cached_logins: 1, oauth_tokens: 1, unopened: 0 }],
  );
  assert.deepEqual(await run(portal), ["completed", null, null]);
  assert.deepEqual(await run(tokens), ["completed", null, null]);
  assert.equal(bench.target.seen("POST /login").length, 1, "its cached login went on");
  assert.equal(bench.target.seen("POST /token").length, 1, "so did its tokens");
});

const UNBOUND = /does not say where it may be sent: .* connects again, or `latchkey credentials rebind cred_/;

async function assertUnused(id: string): Promise<void> {
  const before = bench.target.all.length;
  const [status, kind, detail] = await run(id);
  assert.deepEqual([status, kind], ["failed", "vault"]);
  assert.match(String(detail), UNBOUND);
  assert.equal(bench.target.all.length, before, "nothing is sent");
}

test("a value of before that is put back is sent nowhere, also after another start", async () => {
  await putBack("credential", portal);
  await assertUnused(portal);
  await restart();
  await assertUnused(portal);
  await putBack("oauth_token", tokens);
  await assertUnused(tokens);
});

test("without the mark, or with one of somebody's own, nothing is bound anew: an alarm says so", async () => {
  for (const change of [
    "update installation set credentials_bound_at = null, credentials_bound_mac = null",
    "update installation set credentials_bound_at = app_now(), credentials_bound_mac = decode(repeat('00', 32), 'hex')",
  ]) {
    await db().query(
      "create table kept_mark as select credentials_bound_at, credentials_bound_mac from installation",
    );
    await db().query(change);
    const before = bench.installation.logs().length;
    await restart();
    assert.match(bench.installation.logs().slice(before), /"alarm":"credentials_bound"/, change);
    await assertUnused(portal);
    const { stdout } = await bench.installation.command("doctor");
    assert.match(stdout, /wrong.*credentials' origins: .*(no mark|not made with)/);
    await db().query(
      `update installation set credentials_bound_at = kept.credentials_bound_at, credentials_bound_mac = kept.credentials_bound_mac
       from kept_mark kept`,
    );
    await db().query("drop table kept_mark");
  }
});

test("what a stranger with the public key has sealed keeps no service from its start", async () => {
  const row = must(old.get(`credential ${portal}`), "it");
  const place = must(CREDENTIAL_PLACES[0], "credentials");
  for (const plain of ["no JSON", "null", '[["@later", "?"]]', '{"a":1}']) {
    await put("credential", { ...row, ...(await vault.seal(Buffer.from(plain), bindingOf(place, row))) });
    const [status, kind, detail] = await run(portal);
    assert.deepEqual([status, kind], ["failed", "vault"], plain);
    assert.ok(!String(detail).includes(plain), detail ?? "");
  }
  await service.end();
  await forget();
  service = await bench.installation.serve();
  const [entry] = await db().query<{ detail: string }>(
    "select detail from audit_entry where action = 'credential.bind'",
  );
  assert.equal(JSON.parse(must(entry, "the entry").detail).unopened, 1);
  assert.deepEqual(await run(tokens), ["completed", null, null]);
});

test("no start goes on whose mark could not be stored", async () => {
  await service.end();
  await forget();
  const key = readFileSync(join(bench.installation.dataFolder, "signing.key"), "utf8");
  const signing = openSigning(readSigningKey(key));
  const log = openLog({ level: "error", format: "json" }, { write: () => undefined });
  await db().query("alter table installation add constraint refused check (credentials_bound_at is null)");
  await assert.rejects(bindCredentials(db(), vault, signing, log), /refused/);
  await db().query("alter table installation drop constraint refused");
  service = await bench.installation.serve();
  assert.equal((await db().query("select 1 from audit_entry where action = 'credential.bind'")).length, 1);
});

test("nobody changes a sealed value while it is being bound anew: its row is locked until the transaction ends", async () => {
  const ids = { credential: portal, oauth_token: tokens } as const;
  for (const [what, column] of [
    ["credential", "id"],
    ["oauth_token", "credential_id"],
  ] as const) {
    const change = async (): Promise<void> => {
      await db().transaction(async (tx) => {
        await tx.query("set local lock_timeout = '100ms'");
        await tx.query(`update ${what} set kid = kid where ${column} = $1`, [ids[what]]);
      });
    };
    await db().transaction(async (tx) => {
      assert.equal((await findSealedOf(tx, what, ids[what]))?.rowId, ids[what]);
      await assert.rejects(change, /lock timeout/, what);
    });
    await change();
  }
});
