// Rows that decide: every table that carries signatures is verified, and what was signed once is never signed again by itself.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkSigningKey } from "#actions/keys/check-signing-key.ts";
import { reconcileRestore } from "#actions/credentials/restore-reconcile.ts";
import { ROW_ENTRIES } from "#db/audit-entries.ts";
import { checkSignedRows } from "#db/signing/check-signed-rows.ts";
import { signFirstRows } from "#db/signing/first-signing.ts";
import { settleRows } from "#db/signing/signed-rows.ts";
import { SIGNED_TABLES } from "#db/signing/signed-tables.ts";
import { must } from "#lib/assert.ts";
import { signingOf } from "../invariants.ts";
import { install, type Installation } from "../service.ts";

let installation: Installation & AsyncDisposable;
before(async () => {
  installation = await install();
  await apply(1);
});
after(async () => await installation?.[Symbol.asyncDispose]());

const apply = async (version: number): Promise<void> =>
  await installation.apply(
    "account: acme",
    `strategy: strat_one
account: acme
name: Version ${version}
hosts: ["https://one.example"]
fields: [{ key: token, label: Token, type: password, required: true }]
login: { type: bearer, token: token }`,
  );

const query = async <T>(text: string, values: readonly unknown[] = []): Promise<T[]> =>
  await installation.database.db.query<T>(text, values);

async function refused(): Promise<readonly string[]> {
  const { db } = installation.database;
  const found = await checkSignedRows(db, { versions: true });
  await settleRows(db);
  return found.refused.map(({ kind, id, fault }) => `${kind} ${id.replace(/acct_\w+/, "acct_")} ${fault}`);
}

test("every table with signatures is one that is verified, and has what its kind names", async () => {
  const tables = await query<{ name: string }>(
    `select table_name as name from information_schema.columns where column_name = 'row_mac' order by 1`,
  );
  assert.deepEqual(
    tables.map(({ name }) => name),
    Object.values(SIGNED_TABLES)
      .map(({ table }) => table)
      .toSorted(),
  );
  assert.deepEqual(await refused(), []);
});

test("what the audit log says of a row is found by an index, however long the log is", async () => {
  const plan = await installation.database.db.transaction(async (tx) => {
    await tx.query("set local enable_seqscan = off");
    return await tx.query<Record<string, string>>(`explain ${ROW_ENTRIES}`, [["operator/op_1"]]);
  });
  assert.match(plan.map((line) => line["QUERY PLAN"]).join("\n"), /audit_entry_row/);
});

const LOST: Readonly<Record<string, readonly string[]>> = {
  "the mark": ["delete from row_mark"],
  "a mark that somebody else has made": ["update row_mark set mac = decode(repeat('00', 32), 'hex')"],
  "the mark, its audit entry and all signatures": [
    "delete from row_mark",
    // By the owner: the role of the service can't.
    "alter table audit_entry disable trigger user",
    "delete from audit_entry where action = 'row.sign'",
    ...Object.values(SIGNED_TABLES).map(({ table }) => `update ${table} set row_mac = null`),
  ],
};

for (const [what, statements] of Object.entries(LOST)) {
  test(`without ${what}, nothing is signed at the next start, and the log says so`, async () => {
    await using own = await install();
    const { db } = own.database;
    // A worker has given the entries their places.
    await (await own.serve()).end();
    for (const statement of statements) await db.query(statement);
    await db.query(
      "insert into operator (id, email, password_hash, role) values ('op_forged', 'forged@example.com', 'x', 'admin')",
    );
    const service = await own.serve({}, ["api"]).catch(() => null);
    const [row] = await db.query<{ mac: Buffer | null }>(
      "select row_mac as mac from operator where id = 'op_forged'",
    );
    assert.deepEqual(row, { mac: null });
    assert.match(own.logs(), /"alarm":"row_mark","kind":"operator"/);
    await service?.end();
    const told = await db.query(
      `select subject_id from audit_entry where action = 'row.refuse' and subject_id = 'operator' and detail like '%row_mark%'`,
    );
    assert.equal(told.length, 1);
    await checkSigningKey(db, signingOf(own));
    assert.ok((await checkSignedRows(db, { versions: true })).refused.some(({ id }) => id === "op_forged"));
  });
}

test("several processes that start at once sign once", async () => {
  await using own = await install();
  const { db } = own.database;
  await db.query("delete from row_mark");
  await db.query("alter table audit_entry disable trigger user");
  await db.query("delete from audit_entry");
  await db.query("delete from audit_chain");
  for (const { table } of Object.values(SIGNED_TABLES)) await db.query(`update ${table} set row_mac = null`);
  const signing = signingOf(own);
  const outcomes = await Promise.all([1, 2, 3].map(async () => await signFirstRows(db, signing)));
  assert.equal(outcomes.filter(({ signed }) => signed.length > 0).length, 1);
  assert.equal((await db.query("select 1 from audit_entry where action = 'row.sign'")).length, 1);
  assert.deepEqual((await checkSignedRows(db, { versions: true })).refused, []);
});

test("a restore of single tables is refused until somebody accepts it, by name; what was forged is not accepted", async () => {
  const { db } = installation.database;
  const [before] = await query<{ version: number; serial: number; mac: Buffer }>(
    "select current_version as version, row_serial as serial, row_mac as mac from strategy",
  );
  await apply(2);
  const { version, serial, mac } = must(before, "the row");
  await query("update strategy set current_version = $1, row_serial = $2, row_mac = $3", [
    version,
    serial,
    mac,
  ]);
  await query(
    "insert into operator (id, email, password_hash, role) values ('op_forged', 'forged@example.com', 'x', 'admin')",
  );
  const wrong = ["operator op_forged unsigned", "strategy acct_/strat_one outdated"];
  assert.deepEqual((await refused()).toSorted(), wrong);
  assert.equal((await query("select 1 from row_alarm")).length, 2);

  const { rows } = await reconcileRestore(db, signingOf(installation), []);
  assert.equal(rows, 1);
  assert.deepEqual(await refused(), ["operator op_forged unsigned"]);
  assert.deepEqual(await query("select id from row_alarm"), [{ id: "op_forged" }]);
  const [entry] = await query<{ detail: string }>(
    `select detail from audit_entry where action = 'row.sign' and detail like '%after_restore%'`,
  );
  const { row, after_restore: afterRestore } = JSON.parse(must(entry, "the entry").detail);
  assert.deepEqual([row.replace(/acct_\w+/, "acct_"), afterRestore], ["strategy/acct_/strat_one", true]);
  // The version goes on from there.
  await query("delete from operator where id = 'op_forged'");
  await apply(3);
  assert.deepEqual(await refused(), []);
  assert.deepEqual(await query("select current_version as version from strategy"), [{ version: 3 }]);
});
