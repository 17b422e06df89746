// SECURITY.md: somebody who writes to the database gets no credential sealed to a key of their own.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { addKey, promoteKey } from "#actions/vault/master-keys.ts";
import { sealSentinel } from "#actions/vault/prepare-vault.ts";
import { must } from "#lib/assert.ts";
import { openFileSource } from "#vault/key-source.ts";
import { generateMasterKey, readMasterKey } from "#vault/master-key.ts";
import { openVault } from "#vault/vault.ts";
import { connect, openCaller } from "../caller.ts";
import { signingOf } from "../invariants.ts";
import { install, type Installation } from "../service.ts";

const SECRET = "canary-typed-on-the-form-42";
/** A process looks at the keys each second. */
const FOLLOWED_MS = 2_500;

async function installed(): Promise<Installation & AsyncDisposable> {
  const installation = await install();
  await installation.apply(
    "account: acme",
    `strategy: strat_portal
account: acme
hosts: ["https://portal.example"]
fields: [{ key: token, label: Token, type: password, required: true }]
login: { type: bearer, token: token }`,
  );
  return installation;
}

/** What somebody who writes to the database does: their own key seals, with all that a row of ours has. */
async function swap({ database: { db } }: Installation) {
  const own = readMasterKey(generateMasterKey().fileText);
  const sentinel = await sealSentinel(own.publicJwk);
  await db.query("update vault_key set is_primary = false, demoted_at = app_now()");
  await db.query("insert into vault_key (kid, public_jwk, sentinel, is_primary) values ($1, $2, $3, true)", [
    own.kid,
    own.publicJwk,
    sentinel,
  ]);
  return own;
}

interface Sealed {
  readonly id: string;
  readonly accountId: string;
  readonly kid: string;
  readonly sealed: Buffer;
}

async function type(installation: Installation, url: string): Promise<Sealed> {
  const id = await connect(openCaller(url, await installation.createKey("acme")), "strat_portal", {
    token: SECRET,
  });
  const rows = await installation.database.db.query<Sealed>(
    `select id, account_id as "accountId", kid, sealed from credential where id = $1`,
    [id],
  );
  return must(rows[0], "the credential");
}

/** Bytes of plain text that a holder of these keys gets out of a credential. */
async function bytesRead(
  { publicJwk, privateKeys }: ReturnType<typeof readMasterKey>,
  { id, accountId, sealed }: Sealed,
): Promise<number> {
  const binding = { purpose: "credential", accountId, rowId: id, strategyId: "strat_portal" } as const;
  const opened = openVault({ publicKey: publicJwk, privateKeys }).open(sealed, binding);
  return (await opened.catch(() => Buffer.alloc(0))).length;
}

const ownKeys = (installation: Installation): ReturnType<typeof readMasterKey> =>
  readMasterKey(readFileSync(join(installation.dataFolder, "master.key"), "utf8"));

test("a key that is swapped under an API-only service seals nothing: the alarm names its row, and the true key goes on", async () => {
  await using installation = await installed();
  const { db } = installation.database;
  const service = await installation.serve({}, ["api"]);
  const attacker = await swap(installation);
  await sleep(FOLLOWED_MS);
  const credential = await type(installation, service.url);
  assert.equal(await bytesRead(attacker, credential), 0);
  assert.equal(credential.kid, ownKeys(installation).kid);
  assert.ok((await bytesRead(ownKeys(installation), credential)) > 0);

  assert.deepEqual(await db.query("select kind, id, fault from row_alarm order by fault"), [
    { kind: "vault_key", id: credential.kid, fault: "forged" },
    { kind: "vault_key", id: attacker.kid, fault: "unsigned" },
  ]);
  const entries = await db.query<{ id: string }>(
    "select subject_id as id from audit_entry where action = 'row.refuse' order by subject_id",
  );
  assert.deepEqual(
    entries.map(({ id }) => id),
    [attacker.kid, credential.kid].toSorted(),
  );
  assert.match(
    installation.logs(),
    new RegExp(`"alarm":"row_refused","kind":"vault_key","id":"${attacker.kid}"`),
  );
});

test("an API-only service does not start with a swapped key, says which row it is, and how to put it right", async () => {
  await using installation = await installed();
  const { db } = installation.database;
  const attacker = await swap(installation);
  await assert.rejects(
    installation.serve({}, ["api"]),
    new RegExp(`The row vault_key ${attacker.kid} of the database has no signature.*master-key promote`),
  );
  // The remedy that it names.
  const source = openFileSource(join(installation.dataFolder, "master.key"));
  const { kid } = ownKeys(installation);
  const { registerKey } = await import("#actions/vault/master-keys.ts");
  await registerKey(db, signingOf(installation).audit, source, kid);
  await promoteKey(db, signingOf(installation).audit, source, kid);
  const service = await installation.serve({}, ["api"]);
  assert.equal((await type(installation, service.url)).kid, kid);
});

test("a public key that is exchanged in its own row, and one with another row's signature, seal nothing", async () => {
  for (const forge of ["public_jwk = $1", "public_jwk = $1, is_primary = true"]) {
    await using installation = await installed();
    const attacker = readMasterKey(generateMasterKey().fileText);
    await installation.database.db.query(`update vault_key set ${forge}`, [attacker.publicJwk]);
    await assert.rejects(
      installation.serve({}, ["api"]),
      /The row vault_key \S+ of the database was changed/,
    );
  }
});

test("a key that was primary before and is put back with its old row is older than the audit log says: it seals nothing", async () => {
  await using installation = await installed();
  const { db } = installation.database;
  const [before] = await db.query<Record<string, unknown>>("select * from vault_key");
  const audit = signingOf(installation).audit;
  const source = openFileSource(join(installation.dataFolder, "master.key"));
  const added = await addKey(db, audit, source);
  const [unpromoted] = await db.query<Record<string, unknown>>("select * from vault_key where kid = $1", [
    added.kid,
  ]);
  await promoteKey(db, audit, source, added.kid);
  const service = await installation.serve({}, ["api"]);
  assert.equal((await type(installation, service.url)).kid, added.kid);

  // Both rows as they were once, with the signatures that they had.
  for (const row of [must(unpromoted, "the key that was added"), must(before, "the first key")])
    await db.query(
      `update vault_key set is_primary = given.is_primary, row_serial = given.row_serial, row_mac = given.row_mac
       from jsonb_populate_record(null::vault_key, $2::jsonb) as given where vault_key.kid = $1`,
      [
        row["kid"],
        JSON.stringify({
          ...row,
          row_mac: `\\x${(row["row_mac"] as Buffer).toString("hex")}`,
          sentinel: null,
        }),
      ],
    );
  await sleep(FOLLOWED_MS);
  assert.equal((await type(installation, service.url)).kid, added.kid);
  await assert.rejects(
    installation.serve({}, ["api"]),
    new RegExp(
      `The row vault_key ${String(must(before, "a key")["kid"])} of the database is older than the newest version`,
    ),
  );
});
