// SECURITY.md: a credential reaches only the hosts of its strategy: those that it was connected for, whatever the database says since.
import assert from "node:assert/strict";
import { join } from "node:path";
import { load } from "cheerio";
import { after, afterEach, before, test } from "node:test";
import { applyConfig, planConfig } from "#actions/config/apply-config.ts";
import { prepareVault } from "#actions/vault/prepare-vault.ts";
import { writeCredential } from "#domain/destination.ts";
import { must } from "#lib/assert.ts";
import { newId } from "#lib/new-id.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import type { Keyring } from "#vault/vault.ts";
import { blueprint, openBench, type Bench, type EndedRun } from "../documents/bench.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { connect, openCaller } from "../caller.ts";
import { assertInvariants, signingOf } from "../invariants.ts";
import type { RunningService } from "../service.ts";
import { signAgain } from "../sign-again.ts";

const SECRET = "the-secret-of-amelia-7Yk2";

/** Who collects what is sent elsewhere. */
let trap: Target;
let bench: Bench;
let vault: Keyring;
let service: RunningService;

const OUT = "- { id: out, type: output, refKey: out, from: read }";
const read = (url: string): string =>
  `- { id: read, type: http, credential: it, request: { url: "${url}" }, records: $ }\n${OUT}`;

before(async () => {
  trap = await openTarget();
  bench = await openBench([
    `strategy: strat_key
account: acme
hosts: ["{TARGET}"]
fields: [{ key: key, type: password }]
login: { type: headers, headers: { X-Key: "{{ $credential.key }}" } }`,
    `strategy: strat_portal
account: acme
hosts: ["{TARGET}"]
fields: [{ key: key, type: password }]
login:
  type: http
  steps: [{ request: { method: POST, url: "{TARGET}/login", form: { key: "{{ $credential.key }}" } } }]
  cache: 1h`,
    `strategy: strat_tokens
account: acme
hosts: ["{TARGET}"]
fields: [{ key: user, type: text }, { key: key, type: password }]
login: { type: oauth2, grant: password, client_id: x, token_url: "{TARGET}/token", username: user, password: key }`,
    ...["key", "portal", "tokens"].map((name) =>
      blueprint(name, read("/items"), `credentials: { it: { strategy: strat_${name} } }`),
    ),
    blueprint("key-led-away", read("{TARGET}/led-away"), "credentials: { it: { strategy: strat_key } }"),
  ]);
  const { target } = bench;
  for (const each of [target, trap]) {
    each.on("GET /items", { json: [{ n: 1 }] });
    each.on("POST /login", (_seen, count) => ({
      text: "in",
      headers: { "set-cookie": `session=session-number-${count}-of-many-characters` },
    }));
    each.on("POST /token", (_seen, count) => ({
      json: {
        access_token: `access-${count}`,
        refresh_token: `refresh-${count}`,
        token_type: "bearer",
        expires_in: 30,
      },
    }));
  }
  target.on("GET /led-away", { status: 302, headers: { location: `${trap.url}/items` } });
  service = bench.service;
  vault = await prepareVault(
    bench.installation.database.db,
    await readKeys(openFileSource(join(bench.installation.dataFolder, "master.key"))),
  );
});
afterEach(async () => await assertInvariants(bench.installation));
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  await trap?.[Symbol.asyncDispose]();
});

/** By whatever service runs now. */
const connectAt = async (strategyId: string, values: Readonly<Record<string, string>>): Promise<string> =>
  await connect(openCaller(service.url, bench.key), strategyId, values);

const query = async <T>(sql: string, values: readonly unknown[] = []): Promise<readonly T[]> =>
  await bench.installation.database.db.query<T>(sql, [...values]);

/**
 * As somebody in an API process, who writes to the database and signs rows: another document of a strategy, in force at once, that no
 * `apply` has seen. (Without the signing key it is not even looked at: test/config/forged-documents.pg.test.ts.)
 */
async function plantVersion(strategyId: string, change: (document: string) => string): Promise<number> {
  const [row] = await query<{ document: string; version: number }>(
    "select document, version from strategy_version where strategy_id = $1 order by version desc limit 1",
    [strategyId],
  );
  const { document, version } = must(row, strategyId);
  await query(
    `insert into strategy_version (account_id, strategy_id, version, document)
     select account_id, id, $2, $3 from strategy where id = $1`,
    [strategyId, version + 1, change(document)],
  );
  await query("update strategy set current_version = $2 where id = $1", [strategyId, version + 1]);
  await signAgain(bench.installation.database.db, "strategy_version", "strategy");
  return version + 1;
}

/** Relative URLs lead to it then. */
const addTrap = (document: string): string => {
  const parsed = JSON.parse(document) as { hosts: string[] };
  return JSON.stringify({ ...parsed, hosts: [trap.url, ...parsed.hosts] });
};
const onlyTrap = (document: string): string => document.replaceAll(bench.target.url, trap.url);
const credentialRow = async (id: string) =>
  must(
    (
      await query<{ sealed: Buffer; kid: string; accountId: string; strategyId: string }>(
        `select sealed, kid, account_id as "accountId", strategy_id as "strategyId" from credential where id = $1`,
        [id],
      )
    )[0],
    id,
  );

function assertKept(run: EndedRun, kind: string, detail: RegExp): void {
  assert.deepEqual(trap.all, [], "nothing is sent");
  assert.deepEqual([run.status.status, run.kind], ["failed", kind], String(run.detail));
  assert.match(String(run.detail), detail);
}

const NOT_CONNECTED_FOR =
  /was not connected for http:\/\/127\.0\.0\.1:\d+, .* connects again, or `latchkey credentials rebind cred_/;

test("a strategy row that names another host, beside or in place of the old one, sends no credential there", async () => {
  const id = await connectAt("strat_key", { key: SECRET });
  assert.equal((await bench.run("key", { credential_id: id })).status.status, "completed");
  assert.equal(bench.target.seen("GET /items").at(-1)?.headers["x-key"], SECRET);
  await plantVersion("strat_key", addTrap);
  assertKept(await bench.run("key", { credential_id: id }), "target", NOT_CONNECTED_FOR);
  assertKept(await bench.run("key-led-away", { credential_id: id }), "target", NOT_CONNECTED_FOR);
  await plantVersion("strat_key", onlyTrap);
  assertKept(await bench.run("key", { credential_id: id }), "target", NOT_CONNECTED_FOR);
  await plantVersion("strat_key", (document) => document.replaceAll(trap.url, bench.target.url));
  assert.equal((await bench.run("key", { credential_id: id })).status.status, "completed");
});

/** A version that is in force already, changed in its place: who follows must read it anew, so the service starts again. */
async function changeInPlace(strategyId: string, change: (document: string) => string): Promise<void> {
  const rows = await query<{ version: number; document: string }>(
    "select version, document from strategy_version where strategy_id = $1",
    [strategyId],
  );
  for (const { version, document } of rows)
    await query("update strategy_version set document = $3 where strategy_id = $1 and version = $2", [
      strategyId,
      version,
      change(document),
    ]);
  await signAgain(bench.installation.database.db, "strategy_version");
  await service.end();
  service = await bench.installation.serve();
}

async function run(key: string, credentialId: string): Promise<EndedRun> {
  const caller = openCaller(service.url, bench.key);
  const { body } = await caller.post(`/blueprints/${key}/trigger`, { credential_id: credentialId });
  const { body: status } = await caller.waitForRun(body.id);
  const [row] = await query<{ kind: string; detail: string }>(
    "select error_kind as kind, error_detail as detail from run where id = $1",
    [body.id],
  );
  return { id: body.id, status, steps: [], results: {}, answer: null, ...must(row, "the run") };
}

const bindingOf = ({ accountId, strategyId }: { accountId: string; strategyId: string }, rowId: string) =>
  ({ purpose: "credential", accountId, strategyId, rowId }) as const;

/** Anybody with the public key can seal: a credential of the attacker's own, in the place of another, which may go to the attacker. */
async function forge(id: string, fields: Readonly<Record<string, string>>): Promise<void> {
  const plain = writeCredential(new Map(Object.entries(fields)), [bench.target.url, trap.url]);
  const { sealed } = await vault.seal(Buffer.from(plain), bindingOf(await credentialRow(id), id));
  await query("update credential set sealed = $2 where id = $1", [id, sealed]);
}

test("a run that somebody has written into the database, of a version that no one has applied, sends nothing there", async () => {
  const id = await connectAt("strat_key", { key: SECRET });
  const { id: genuine } = await bench.run("key", { credential_id: id });
  const version = await plantVersion("strat_key", addTrap);
  const forged = newId("run_");
  await query(
    `with forged as (
       insert into run (id, run_key, account_id, blueprint_id, blueprint_version, metadata, ignored_keys, timeout_ms, retention_ms, api_key_id)
       select $1, gen_random_uuid(), account_id, blueprint_id, blueprint_version, metadata, ignored_keys, timeout_ms, retention_ms, api_key_id
       from run where id = $2)
     insert into run_credential (account_id, run_id, slot, credential_id, strategy_id, strategy_version)
     select account_id, $1, slot, credential_id, strategy_id, $3 from run_credential where run_id = $2`,
    [forged, genuine, version],
  );
  assertKept(await bench.ended(forged), "target", NOT_CONNECTED_FOR);
});

test("a cached login is not sent along with another credential in its place", async () => {
  const id = await connectAt("strat_portal", { key: SECRET });
  assert.equal((await run("portal", id)).status.status, "completed");
  assert.equal((await run("portal", id)).status.status, "completed");
  assert.equal(bench.target.seen("POST /login").length, 1, "it is cached");
  await changeInPlace("strat_portal", addTrap);
  assertKept(await run("portal", id), "target", NOT_CONNECTED_FOR);
  await forge(id, { key: "of-the-attacker" });
  assert.equal((await run("portal", id)).status.status, "completed");
  assert.deepEqual(
    bench.target.seen("POST /login").map(({ body }) => body),
    [`key=${SECRET}`, "key=of-the-attacker"],
    "it was not used",
  );
  assert.deepEqual(
    trap.all.map(({ headers }) => headers.cookie),
    ["session=session-number-1-of-many-characters"],
  );
});

test("tokens are refreshed and sent where they were given out: with a changed row, and with another credential in its place", async () => {
  const id = await connectAt("strat_tokens", { user: "amelia", key: SECRET });
  assert.equal((await run("tokens", id)).status.status, "completed");
  await changeInPlace("strat_tokens", onlyTrap);
  const seen = trap.all.length;
  const changed = await run("tokens", id);
  assert.deepEqual([changed.status.status, changed.kind], ["failed", "login"]);
  assert.match(String(changed.detail), NOT_CONNECTED_FOR);
  await forge(id, { user: "mallory", key: "of-the-attacker" });
  assert.equal((await run("tokens", id)).status.status, "failed");
  assert.equal(trap.all.length, seen, "nothing is sent");
  await changeInPlace("strat_tokens", (document) => document.replaceAll(trap.url, bench.target.url));
  await query("update oauth_token set expires_at = app_now()");
  assert.equal((await run("tokens", id)).status.status, "completed");
  assert.match(bench.target.seen("POST /token").at(-1)?.body ?? "", /refresh_token=refresh-0/);
  // What a refresh gave carries the same origins.
  await changeInPlace("strat_tokens", onlyTrap);
  assert.match(String((await run("tokens", id)).detail), NOT_CONNECTED_FOR);
  assert.equal(trap.all.length, seen, "nothing is sent");
});

test("a widened strategy says whom it will not reach; `rebind` lets them go there, and is on record with both lists", async () => {
  const document = (hosts: string): string => `strategy: strat_wide
account: acme
hosts: [${hosts}]
fields: [{ key: key, type: password }]
login: { type: headers, headers: { X-Key: "{{ $credential.key }}" } }`;
  await bench.apply(
    document('"{TARGET}"'),
    blueprint("wide", read("/items"), "credentials: { it: { strategy: strat_wide } }"),
  );
  const [id, other] = [
    await connectAt("strat_wide", { key: SECRET }),
    await connectAt("strat_wide", { key: SECRET }),
  ];
  const widened = [{ file: "f", text: document(`"${trap.url}", "${bench.target.url}"`) }];
  const { db } = bench.installation.database;
  const plan = await planConfig(db, widened);
  const applied = await applyConfig(db, signingOf(bench.installation), widened);
  for (const outcome of [plan, applied]) {
    assert.ok(outcome.ok);
    assert.match(
      outcome.warnings.at(-1) ?? "",
      /^2 credentials of acme\/strat_wide were not connected for http:\S+ and will not be sent there\. .* `latchkey credentials rebind --account acme --strategy strat_wide` lets them\.$/,
    );
  }
  const seen = trap.all.length;
  assert.match(String((await run("wide", id)).detail), NOT_CONNECTED_FOR);
  const command = async (...arguments_: string[]) => await bench.installation.command(...arguments_);
  const shown = await command("credentials", "rebind", id);
  assert.equal(shown.code, 1);
  assert.match(shown.stdout, new RegExp(`${id}\n {6}\\+ ${trap.url}\n$`));
  assert.match(shown.stderr, /nothing was changed.* Add --yes/);
  assert.match(String((await run("wide", id)).detail), NOT_CONNECTED_FOR);
  assert.equal(trap.all.length, seen, "nothing is sent");
  // No audit, no effect.
  await query(
    `create function refuse_audit() returns trigger language plpgsql as $$ begin raise exception 'no audit'; end $$`,
  );
  await query(
    `create trigger refuse_audit before insert on audit_entry for each row when (new.action = 'credential.rebind')
     execute function refuse_audit()`,
  );
  assert.equal((await command("credentials", "rebind", id, "--yes")).code, 1);
  await query("drop trigger refuse_audit on audit_entry");
  assert.match(String((await run("wide", id)).detail), NOT_CONNECTED_FOR);
  const done = await command("credentials", "rebind", id, "--yes");
  assert.equal(done.code, 0, done.stderr);
  assert.equal((await run("wide", id)).status.status, "completed");
  assert.equal(trap.all.at(-1)?.headers["x-key"], SECRET);
  assert.match(String((await run("wide", other)).detail), NOT_CONNECTED_FOR);
  const [entry] = await query<{ detail: string; actor: string }>(
    "select detail, actor_kind as actor from audit_entry where action = 'credential.rebind' and subject_id = $1",
    [id],
  );
  assert.equal(entry?.actor, "cli");
  assert.deepEqual(JSON.parse(must(entry, "the entry").detail), {
    strategy: "strat_wide",
    before: bench.target.url,
    after: `${trap.url} ${bench.target.url}`,
  });
  assert.match((await command("credentials", "rebind", id, "--yes")).stdout, /Nothing to do/);
  const all = await command(
    "credentials",
    "rebind",
    "--account",
    "acme",
    "--strategy",
    "strat_wide",
    "--yes",
  );
  assert.equal(all.code, 0, all.stderr);
  assert.equal((await run("wide", other)).status.status, "completed");
  const again = await planConfig(db, widened);
  assert.deepEqual(again.ok && { ...again, base: again.base.length }, {
    ok: true,
    base: 64,
    changes: [{ change: "unchanged", kind: "strategy", account: "acme", id: "strat_wide", differences: [] }],
    warnings: [],
    needs: [],
  });
  for (const wrong of [[], ["--account", "acme"], [id, "--account", "acme", "--strategy", "strat_wide"]])
    assert.match(
      (await command("credentials", "rebind", ...wrong)).stderr,
      /Name one credential by its id, or/,
    );
});

test("what holds the cached login or the tokens of a credential is bound anew with it", async () => {
  const document = (token: string): string => `strategy: strat_moving
account: acme
hosts: ["{TARGET}"]
fields: [{ key: user, type: text }, { key: key, type: password }]
login: { type: oauth2, grant: password, client_id: x, token_url: "${token}/token", username: user, password: key }`;
  await bench.apply(
    document("{TARGET}"),
    blueprint("moving", read("/items"), "credentials: { it: { strategy: strat_moving } }"),
  );
  const id = await connectAt("strat_moving", { user: "amelia", key: SECRET });
  assert.equal((await run("moving", id)).status.status, "completed");
  await bench.apply(document(trap.url));
  const seen = trap.all.length;
  assert.match(String((await run("moving", id)).detail), NOT_CONNECTED_FOR);
  assert.equal(trap.all.length, seen, "nothing is sent");
  assert.equal((await bench.installation.command("credentials", "rebind", id, "--yes")).code, 0);
  const moved = await run("moving", id);
  assert.equal(moved.status.status, "completed", String(moved.detail));
  assert.match(trap.seen("POST /token").at(-1)?.body ?? "", /grant_type=refresh_token/);
});

test("the form lists every origin that will receive what is typed, once", async () => {
  await bench.apply(`strategy: strat_listed
account: acme
hosts: ["{TARGET}", "https://portal.example.com"]
fields: [{ key: user, type: text }, { key: key, type: password }]
login:
  type: oauth2
  grant: password
  client_id: x
  issuer: https://login.example.com/realm
  token_url: "${trap.url}/token"
  username: user
  password: key`);
  const { body } = await openCaller(service.url, bench.key).post("/credential-sessions", {
    strategy_id: "strat_listed",
  });
  const page = load(await (await fetch(body.hosted_url)).text());
  const listed = page(".facts li:contains('Used only at') bdi").toArray();
  assert.deepEqual(
    listed.map((each) => page(each).text()),
    [new URL(bench.target.url).host, "portal.example.com", "login.example.com", new URL(trap.url).host],
  );
});
