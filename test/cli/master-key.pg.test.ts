import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { prepareVault } from "#actions/vault/prepare-vault.ts";
import { must } from "#lib/assert.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import type { Keyring } from "#vault/vault.ts";
import { eventually } from "../eventually.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import type { Target } from "../flow/target.ts";
import { install, type CommandResult, type Installation } from "../service.ts";
import { plantSealed, secretOf } from "../vault/plant.ts";
import { latchkey, newFolder, runCommand, startLatchkey } from "./program.ts";
import { inTier } from "../tiers.ts";
import { portalDocuments, startTokenPortal } from "../vault/token-portal.ts";

const PLANTED = 600;
const READ_EVERY_MS = 2;
const TOKEN = "canary-token-of-the-rotation";

let target: Target;
let installation: Installation & AsyncDisposable;
let caller: Caller;
let connected: string;
let firstKid: string;

before(async () => {
  target = await startTokenPortal(TOKEN);
  installation = await install();
  await installation.apply(...portalDocuments(target.url, { login: ", cache: 15m" }));
  caller = openCaller((await installation.serveProcess()).url, await installation.createKey("acme"));
  connected = await connect(caller, "strat_portal", { token: TOKEN });
  firstKid = must((await status())[0], "a key").kid;
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

const keyFile = (): string => join(installation.dataFolder, "master.key");

const masterKey = async (code: number, ...arguments_: string[]): Promise<CommandResult> =>
  await runCommand(installation, code, ["master-key", ...arguments_]);

interface Status {
  readonly kid: string;
  readonly state: string;
  readonly has_private_half: boolean | null;
  readonly use: readonly { readonly noun: string; readonly total: number }[];
}

async function status(): Promise<readonly Status[]> {
  return (JSON.parse((await masterKey(0, "status", "--json")).stdout) as { items: Status[] }).items;
}

async function sealedWith(kid: string): Promise<number> {
  const [row] = await installation.database.db.query<{ total: number }>(
    `select (select count(*) from credential where kid = $1) + (select count(*) from login_session where kid = $1) as total`,
    [kid],
  );
  return row?.total ?? 0;
}

const openHere = async (): Promise<Keyring> =>
  await prepareVault(installation.database.db, await readKeys(openFileSource(keyFile())));

async function runOnce(): Promise<string> {
  const { body } = await caller.post("/blueprints/read/trigger", { credential_id: connected });
  return (await caller.waitForRun(body.id)).body.status;
}

async function addKey(): Promise<string> {
  const { stdout } = await masterKey(0, "add");
  return must(/Added (\S{16}) to the file/.exec(stdout)?.[1], stdout);
}

/** Reads as workers do, until told to stop: how many, and what failed. */
function readAllTheTime(ids: readonly string[]): () => Promise<{ reads: number; failures: string[] }> {
  let over = false;
  const failures: string[] = [];
  let reads = 0;
  const reading = (async () => {
    const vault = await openHere();
    const [account] = await installation.database.db.query<{ id: string }>("select id from account");
    while (!over) {
      const id = must(ids[(reads * 7_919) % ids.length], "a planted id");
      const [row] = await installation.database.db.query<{ sealed: Buffer }>(
        "select sealed from credential where id = $1",
        [id],
      );
      reads++;
      await sleep(READ_EVERY_MS);
      try {
        const plain = await vault.open(must(row, id).sealed, {
          purpose: "credential",
          accountId: must(account, "account").id,
          rowId: id,
          strategyId: "strat_portal",
        });
        if (!Buffer.from(plain).toString().includes(secretOf(id))) failures.push(`${id}: another secret`);
      } catch (error) {
        failures.push(`${id}: ${String(error)}`);
      }
    }
  })();
  return async () => {
    over = true;
    await reading;
    return { reads, failures };
  };
}

describe("a rotation while the service works", () => {
  let newKid: string;

  test("add: a second key in the file, private and complete, that opens and does not seal", async () => {
    const before = readFileSync(keyFile(), "utf8");
    newKid = await addKey();
    assert.equal(statSync(keyFile()).mode & 0o777, 0o600);
    const file = JSON.parse(readFileSync(keyFile(), "utf8")) as { keys: { kid: string }[]; primary: string };
    assert.deepEqual([file.keys.map(({ kid }) => kid), file.primary], [[firstKid, newKid], firstKid]);
    assert.deepEqual(file.keys[0], (JSON.parse(before) as { keys: object[] }).keys[0]);
    assert.deepEqual(
      (await status()).map(({ kid, state, has_private_half }) => [kid, state, has_private_half]),
      [
        [firstKid, "primary", true],
        [newKid, "opens only", true],
      ],
    );
    const another = await connect(caller, "strat_portal", { token: TOKEN });
    assert.equal(await sealedWith(firstKid), 2, another);
  });

  test("promote: the running service seals with the new key within two seconds, without a restart", async () => {
    assert.equal(await runOnce(), "completed");
    await masterKey(0, "promote", newKid);
    await sleep(2_000);
    await connect(caller, "strat_portal", { token: TOKEN });
    assert.equal(await sealedWith(newKid), 1);
    assert.equal(await runOnce(), "completed");
    assert.doesNotMatch(installation.logs(), /does not hold/);
  });

  test("retire is refused with counts while anything refers to the key, and always for the primary one", async () => {
    const { stderr } = await masterKey(1, "retire", firstKid);
    assert.match(stderr, /still seals 2 credentials and 1 cached logins.*master-key rewrap/);
    assert.match((await masterKey(1, "retire", newKid)).stderr, /is the primary key/);
    assert.match((await masterKey(1, "retire", "nothing")).stderr, /has no master key nothing\. Its keys: /);
    assert.equal((await status()).length, 2);
  });

  test("rewrap killed with -9 in the middle goes on where it was; every read in between succeeds", async () => {
    const { db } = installation.database;
    const old = must((await readKeys(openFileSource(keyFile()))).masterKey.publicJwks.get(firstKid), "key");
    const { openVault } = await import("#vault/vault.ts");
    const ids = await plantSealed(db, openVault({ publicKey: old }), "strat_portal", PLANTED);
    const stopReading = readAllTheTime(ids);

    const killed = startLatchkey(["master-key", "rewrap", "--batch", "50"], installation.environment);
    await eventually("some are done", async () => ((await sealedWith(newKid)) > 100 ? true : undefined));
    killed.child.kill("SIGKILL");
    assert.equal((await killed.ended).signal, "SIGKILL");
    const left = await sealedWith(firstKid);
    assert.ok(left > 0 && left < PLANTED, `${left} left`);
    assert.match(
      (await masterKey(1, "retire", firstKid)).stderr,
      new RegExp(`still seals ${left - 1} credentials and 1 `),
    );

    // Two machines at once do no harm.
    const [one, other] = await Promise.all([masterKey(0, "rewrap"), masterKey(0, "rewrap")]);
    assert.match(one.stderr, /Resealing 100 % {2}\d+ of \d+, \d+ a second/);
    const counts = [one, other].map(({ stdout }) => Number(/Resealed (\d+) values/.exec(stdout)?.[1]));
    assert.equal((counts[0] ?? 0) + (counts[1] ?? 0), left);
    assert.match((await masterKey(0, "rewrap")).stdout, /Resealed 0 values/);
    assert.equal(await runOnce(), "completed");

    const { reads, failures } = await stopReading();
    assert.deepEqual(failures, []);
    assert.ok(reads > 100, `${reads} reads`);
    assert.equal(await sealedWith(firstKid), 0);
    const { stdout } = await runCommand(installation, 0, ["doctor"]);
    assert.match(
      stdout,
      new RegExp(`${newKid} \\(primary, seals ${PLANTED + 4}\\)[^]*opens all ${PLANTED + 3} credentials`),
    );
  });

  test("a row that is written during a rewrap keeps what was written", async () => {
    const { db } = installation.database;
    const { listSealed, replaceSealed, SEALED_PLACES } = await import("#db/credentials/sealed-places.ts");
    const place = must(SEALED_PLACES[0], "credentials");
    const [was] = await listSealed(db, place, { afterId: connected, limit: 1 });
    const row = must(was, "a row");
    await db.query("update credential set sealed = sealed || '\\x20' where id = $1", [row.rowId]);
    assert.equal(await replaceSealed(db, place, newKid, [{ was: row, sealed: Buffer.from("stale") }]), 0);
    const result = await masterKey(0, "rewrap");
    assert.match(result.stdout, /Resealed 0 values/);
    await db.query("delete from credential where id = $1", [row.rowId]);
  });

  test("what can't be opened stays as it is and is named", async () => {
    const { db } = installation.database;
    const [row] = await db.query<{ id: string }>(
      "select id from credential where session_id like 'sess_of_%' limit 1",
    );
    const id = must(row, "a row").id;
    await db.query(
      "update credential set kid = $2, sealed = set_byte(sealed, 400, get_byte(sealed, 400) # 1) where id = $1",
      [id, firstKid],
    );
    assert.match(
      (await masterKey(1, "rewrap")).stderr,
      new RegExp(`1 could not be opened.*credential ${id}`),
    );
    assert.match((await masterKey(1, "retire", firstKid)).stderr, /still seals 1 credentials/);
    await db.query("delete from credential where id = $1", [id]);
  });

  test("retire: refused for a minute after the promotion, then the key is gone and nothing is sealed with it", async () => {
    const { db } = installation.database;
    await db.query("update vault_key set demoted_at = app_now() - interval '50 s' where kid = $1", [
      firstKid,
    ]);
    assert.match((await masterKey(1, "retire", firstKid)).stderr, /less than 60 seconds ago/);
    await db.query("update vault_key set demoted_at = app_now() - interval '61 s' where kid = $1", [
      firstKid,
    ]);
    const { stdout, stderr } = await masterKey(0, "retire", firstKid);
    assert.match(stdout, /nothing in this database needs it/);
    assert.match(stderr, /Earlier backups[^]*still need its private key/);
    assert.deepEqual(
      (await status()).map(({ kid, state }) => [kid, state]),
      [
        [newKid, "primary"],
        [firstKid, "not registered"],
      ],
    );
    await assert.rejects(
      db.query("update credential set kid = $1 where id = $2", [firstKid, connected]),
      /foreign key/,
    );
    assert.equal(await runOnce(), "completed");
  });

  test("a retired key that is needed again is registered by its id", async () => {
    await masterKey(0, "add", firstKid);
    assert.deepEqual((await status()).map(({ state }) => state).toSorted(), ["opens only", "primary"]);
    assert.match(
      (await masterKey(1, "add", "unknown-kid-0000")).stderr,
      /There is no key unknown-kid-0000 in/,
    );
  });

  test("every change of the keys is in the audit log", async () => {
    const entries = await installation.database.db.query<{ kid: string; change: string }>(
      `select subject_id as kid, detail::json->>'change' as change from audit_entry
       where action = 'master_key.change' and subject_id = $1 order by occurred_at, id`,
      [newKid],
    );
    assert.deepEqual(
      entries.slice(0, 2).map(({ change }) => change),
      ["added", "promoted"],
    );
    const [retired] = await installation.database.db.query(
      `select 1 from audit_entry where action = 'master_key.change' and detail::json->>'change' = 'retired'`,
    );
    assert.ok(retired);
  });

  test("no command printed a private key, and the log has none", () => {
    const { keys } = JSON.parse(readFileSync(keyFile(), "utf8")) as { keys: { d: string }[] };
    for (const { d } of keys) assert.ok(!installation.logs().includes(d));
  });
});

describe("a keyset that does not fit", () => {
  test("a key of the database is missing: refused at start, by id and place, and nothing grows", async () => {
    const folder = newFolder();
    mkdirSync(folder, { recursive: true });
    const file = join(folder, "one.key");
    const whole = JSON.parse(readFileSync(keyFile(), "utf8")) as { keys: { kid: string }[] };
    const [one, other] = whole.keys;
    writeFileSync(file, JSON.stringify({ keys: [one], primary: one?.kid }), { mode: 0o600 });
    const text = readFileSync(file, "utf8");
    const environment = { ...installation.environment, LATCHKEY_MASTER_KEY_FILE: file };
    const commands = [["serve"], ["master-key", "add"], ["master-key", "rewrap"]];
    for (const command of inTier(commands, ([first]) => first === "serve")) {
      const { code, stderr } = await latchkey(command, environment);
      assert.equal(code, 1);
      assert.match(
        stderr,
        new RegExp(
          `does not belong to this database: the file ${file} has ${one?.kid} and not ${other?.kid}`,
        ),
      );
    }
    assert.equal(readFileSync(file, "utf8"), text);
    const promoted = await latchkey(["master-key", "promote", must(other, "key").kid], environment);
    assert.equal(promoted.code, 1);
    assert.match(promoted.stderr, /private key of \S+ is not in the file/);
  });

  test("keys from a variable: add prints the new keyset and changes nothing until it is registered", async () => {
    const environment = {
      ...installation.environment,
      LATCHKEY_MASTER_KEY: readFileSync(keyFile(), "utf8"),
      LATCHKEY_MASTER_KEY_FILE: "",
    };
    const before = await status();
    const { code, stdout, stderr } = await latchkey(["master-key", "add"], environment);
    assert.equal(code, 0, stderr);
    const keyset = JSON.parse(stdout) as { keys: { kid: string; d: string }[] };
    const added = must(keyset.keys.at(-1), "the new key");
    assert.match(stderr, new RegExp(`Nothing has changed yet[^]*master-key add ${added.kid}`));
    assert.ok(!stderr.includes(added.d));
    assert.deepEqual(await status(), before);
    const next = { ...environment, LATCHKEY_MASTER_KEY: stdout };
    assert.equal((await latchkey(["master-key", "add", added.kid], next)).code, 0);
    assert.equal((await latchkey(["master-key", "promote", added.kid], next)).code, 0);
    // The service of this installation has not been given it: it says so, and goes on with the key it holds.
    await eventually("the log says so", async () =>
      installation.logs().includes("does not have") ? true : undefined,
    );
    await connect(caller, "strat_portal", { token: TOKEN });
    assert.equal(await sealedWith(added.kid), 0);
    assert.equal(await runOnce(), "completed");
  });
});
