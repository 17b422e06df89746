import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SEALED_PLACES } from "#db/credentials/sealed-places.ts";
import { SEAL_PURPOSES } from "#vault/binding.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";

let database: TestDatabase;
before(async () => (database = await createTestDatabase()));
after(async () => await database.drop());

/** Bytes beside the id of a key are sealed, whatever they are called; so is whatever is called so. */
const FIND_SEALED = `
  select distinct bytes.table_name as name
  from information_schema.columns bytes
  where bytes.table_schema = 'public' and bytes.data_type = 'bytea' and (
    bytes.column_name like '%sealed%' or exists (
      select from information_schema.columns kid
      where kid.table_schema = 'public' and kid.table_name = bytes.table_name and kid.column_name like '%kid%'))
  order by name`;

/** Its sentinels are sealed each with its own key, and go with it. */
const NOT_REWRAPPED = ["vault_key"];

test("every table with sealed bytes is in the list that a rotation goes by", async () => {
  const found = await database.db.query<{ name: string }>(FIND_SEALED);
  const listed = [...SEALED_PLACES.map(({ table }) => table), ...NOT_REWRAPPED].toSorted();
  assert.deepEqual(
    found.map(({ name }) => name),
    listed,
  );
});

test("a sealed table that nobody has listed would be found, whatever its bytes are called", async () => {
  await database.db.query("create table probe_one (id text, kid text, stuff bytea)");
  await database.db.query("create table probe_two (id text, sealed_secret bytea)");
  const found = await database.db.query<{ name: string }>(FIND_SEALED);
  assert.deepEqual(
    found.map(({ name }) => name).filter((name) => name.startsWith("probe")),
    ["probe_one", "probe_two"],
  );
  await database.db.query("drop table probe_one, probe_two");
});

test("no value of a listed table can name a key that is gone, and the question which key it names is quick", async () => {
  for (const { table } of SEALED_PLACES) {
    const guards = await database.db.query(
      `select 1 from pg_constraint where contype = 'f' and conrelid = $1::regclass and confrelid = 'vault_key'::regclass`,
      [table],
    );
    assert.equal(guards.length, 1, `${table}: kid must reference vault_key`);
    const indexes = await database.db.query(
      `select 1 from pg_indexes where tablename = $1 and indexdef like '%(kid)'`,
      [table],
    );
    assert.equal(indexes.length, 1, `${table}: index on kid`);
  }
});

test("each place has a purpose of its own", () => {
  const purposes: readonly string[] = SEALED_PLACES.map(({ purpose }) => purpose);
  assert.equal(new Set(purposes).size, purposes.length);
  for (const purpose of purposes) assert.ok(SEAL_PURPOSES.some((known) => known === purpose));
});
