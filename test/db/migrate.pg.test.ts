import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { listPendingMigrations, migrate, readMigrations } from "#db/connection/migrate.ts";
import type { Database } from "#db/connection/pool.ts";
import { openPool } from "#db/connection/pool.ts";
import { dumpSchema } from "../../scripts/generate/schema-dump.ts";
import { createTestDatabase } from "../database.ts";
import { until } from "../eventually.ts";

const cleanups: (() => void | Promise<void>)[] = [];
after(async () => {
  for (const cleanup of cleanups.toReversed()) await cleanup();
});

/** A database without any table of ours. */
async function emptyDatabase(): Promise<Database & { connectionString: string }> {
  const { connectionString, db, drop } = await createTestDatabase();
  cleanups.push(drop);
  await db.query(
    "drop schema public cascade; create schema public; drop schema if exists graphile_worker cascade",
  );
  return { ...db, connectionString };
}

function folderOf(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-migrations-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  put(folder, files);
  return folder;
}

function put(folder: string, files: Record<string, string>): void {
  for (const [name, sql] of Object.entries(files)) writeFileSync(join(folder, name), sql);
}

const one = "create table one (id int);\ninsert into one values (1);\n";
const two = "create table two (id int);\n";

test("applies the migrations in their order, once", async () => {
  const db = await emptyDatabase();
  const folder = folderOf({
    "0002_two.sql": two,
    "0001_one.sql": one,
    "README.md": "not one",
    "schema.sql": two,
  });
  assert.deepEqual(await migrate(db, folder), { applied: ["0001_one.sql", "0002_two.sql"] });
  assert.deepEqual(await migrate(db, folder), { applied: [] });
  put(folder, { "0003_three.sql": "alter table two add column word text" });
  assert.deepEqual(await migrate(db, folder), { applied: ["0003_three.sql"] });
  assert.deepEqual(
    await db.query("select version, name, length(sha256) as hash from schema_migration order by version"),
    [
      { version: 1, name: "0001_one", hash: 64 },
      { version: 2, name: "0002_two", hash: 64 },
      { version: 3, name: "0003_three", hash: 64 },
    ],
  );
});

test("a migration says in its first line which programs may go on, or nothing", async () => {
  const wrong =
    /0002_two\.sql:1: must be `-- compatible back to NNNN` with the number of an earlier migration/;
  for (const line of ["-- compatible back to 0002", "-- compatible with 0001", "-- Compatible back to 1"]) {
    const folder = folderOf({ "0001_one.sql": one, "0002_two.sql": `${line}\n${two}` });
    await assert.rejects(readMigrations(folder), wrong, line);
  }
  const folder = folderOf({
    "0001_one.sql": one,
    "0002_two.sql": `-- compatible back to 0001\n${two}`,
    "0003_three.sql": "-- Another comment.\nselect 1",
  });
  const said = (await readMigrations(folder)).map(({ compatibleBackTo }) => compatibleBackTo);
  assert.deepEqual(said, [null, 1, null]);
});

test("six processes that start at once apply each migration once", async () => {
  const db = await emptyDatabase();
  const folder = folderOf({ "0001_one.sql": `${one} select pg_sleep(0.2);`, "0002_two.sql": two });
  const pools = Array.from({ length: 6 }, () =>
    openPool(db, { applicationName: "migrate-test", connectTimeoutMs: 20_000 }),
  );
  const results = await Promise.all(pools.map((pool) => migrate(pool, folder)));
  await Promise.all(pools.map((pool) => pool.end()));
  assert.deepEqual(results.flatMap(({ applied }) => applied).toSorted(), ["0001_one.sql", "0002_two.sql"]);
  assert.deepEqual(await db.query("select count(*) as n from one"), [{ n: 1 }]);
});

test("outlasts the pool's time-outs: a migration may take long", async () => {
  const db = await emptyDatabase();
  const hasty = openPool(db, {
    applicationName: "migrate-test",
    connectTimeoutMs: 20_000,
    statementTimeoutMs: 300,
    queryTimeoutMs: 400,
  });
  const folder = folderOf({ "0001_slow.sql": "select pg_sleep(1); create table slow ();" });
  try {
    assert.deepEqual(await migrate(hasty, folder), { applied: ["0001_slow.sql"] });
  } finally {
    await hasty.end();
  }
});

test("a table that is being read is waited for in short tries, and others read it meanwhile", async () => {
  const db = await emptyDatabase();
  const folder = folderOf({ "0001_one.sql": one });
  await migrate(db, folder);
  put(folder, { "0002_wider.sql": "alter table one add column word text" });
  const reader = openPool(db, { applicationName: "backup", idleInTransactionTimeoutMs: 60_000 });
  const hasRead = Promise.withResolvers<void>();
  const mayEnd = Promise.withResolvers<void>();
  const reading = reader.transaction(async (tx) => {
    await tx.query("select from one");
    hasRead.resolve();
    await mayEnd.promise;
  });
  await hasRead.promise;
  const messages: string[] = [];
  const reads: Promise<unknown>[] = [];
  const onWait = (message: string): void => {
    messages.push(message);
    // Between two tries nothing is in the way.
    reads.push(db.query({ text: "select from one", timeoutMs: 500 }).finally(() => mayEnd.resolve()));
  };
  try {
    await assert.rejects(
      migrate(db, folder, { giveUpAfterMs: 0 }),
      /Migration 0002_wider\.sql was not applied: its tables were in use for 0 s.*Start again/,
    );
    const emergency = setTimeout(() => mayEnd.resolve(), 10_000);
    assert.deepEqual(await migrate(db, folder, { onWait }), { applied: ["0002_wider.sql"] });
    clearTimeout(emergency);
    assert.match(
      String(messages[0]),
      /^migration 0002_wider\.sql waits for tables that are in use \(the oldest transaction is that of backup, process \d+, since .* UTC\); retrying in 1 s$/,
    );
    await Promise.all(reads);
  } finally {
    mayEnd.resolve();
    await reading;
    await reader.end();
  }
});

test("a request that waits for one table of a migration and has another one is not what fails", async () => {
  const db = await emptyDatabase();
  const folder = folderOf({ "0001_both.sql": "create table one (id int); create table two (id int);" });
  await migrate(db, folder);
  const wider = ["one", "two"].map((table) => `alter table ${table} add column word text;`);
  put(folder, { "0002_wider.sql": wider.join("\nselect pg_sleep(0.1);\n") });
  const messages: string[] = [];
  let migrated: Promise<unknown> | undefined;
  await db.transaction(async (tx) => {
    await tx.query("insert into two values (1)");
    migrated = migrate(db, folder, { onWait: (message) => messages.push(message) });
    const locked = `select from pg_locks where relation = 'one'::regclass and mode = 'AccessExclusiveLock' and granted`;
    await until("the migration has the first table", async () => (await db.query(locked)).length > 0);
    await tx.query("insert into one values (1)");
  });
  assert.deepEqual(await migrated, { applied: ["0002_wider.sql"] });
  assert.equal(messages.length, 1, "the migration gave way");
});

test("an index that is built concurrently is a migration of its own; one that was broken off is built anew", async () => {
  const db = await emptyDatabase();
  const build = "-- Large.\ncreate unique index concurrently one_id on one (id);\n";
  const folder = folderOf({ "0001_one.sql": `${one} insert into one values (1);` });
  await migrate(db, folder);
  put(folder, { "0002_index.sql": build, "0003_two.sql": two });
  await assert.rejects(migrate(db, folder), /one_id/);
  const isValid = "select indisvalid as valid from pg_index where indexrelid = to_regclass('one_id')";
  assert.deepEqual(await db.query(isValid), [{ valid: false }]);
  await db.query("delete from one where ctid = (select min(ctid) from one)");
  // Others that start meanwhile hold nothing that the build waits for.
  const pools = Array.from({ length: 3 }, () => openPool(db, { applicationName: "migrate-test" }));
  const results = await Promise.all(pools.map(async (pool) => await migrate(pool, folder)));
  await Promise.all(pools.map(async (pool) => await pool.end()));
  assert.deepEqual(await db.query(isValid), [{ valid: true }]);
  assert.deepEqual(results.flatMap(({ applied }) => applied).toSorted(), ["0002_index.sql", "0003_two.sql"]);
  put(folder, { "0004_more.sql": `${build}create table more ();` });
  await assert.rejects(migrate(db, folder), /0004_more\.sql: a migration with CONCURRENTLY is one statement/);
});

test("refuses a changed file that is applied, and applies nothing", async () => {
  const db = await emptyDatabase();
  const folder = folderOf({ "0001_one.sql": one });
  await migrate(db, folder);
  put(folder, { "0001_one.sql": one.replaceAll("\n", "\r\n") });
  assert.deepEqual(await migrate(db, folder), { applied: [] }, "line ends are no change");
  put(folder, { "0001_one.sql": `${one}-- changed`, "0002_two.sql": two });
  await assert.rejects(
    migrate(db, folder),
    /0001_one\.sql was changed after it had been applied.*new migration/,
  );
  assert.deepEqual(await db.query("select to_regclass('two') as two"), [{ two: null }]);
});

test("refuses a database that is newer than the program, and gaps", async () => {
  const db = await emptyDatabase();
  await migrate(db, folderOf({ "0001_one.sql": one, "0003_three.sql": two }));
  await assert.rejects(
    migrate(db, folderOf({ "0001_one.sql": one })),
    /newer than this program: it has 0003_three.*newer version.*backup/,
  );
  await assert.rejects(
    migrate(db, folderOf({ "0001_one.sql": one, "0002_two.sql": two, "0003_three.sql": two })),
    /0002_two\.sql is missing in the database, though the later 0003_three is applied/,
  );
  await assert.rejects(
    migrate(db, folderOf({ "0001_one.sql": one, "0004_four.sql": two })),
    /The database has 0003_three, which this program does not have/,
  );
});

test("a migration that fails leaves nothing of itself and names its line", async () => {
  const db = await emptyDatabase();
  const folder = folderOf({
    "0001_one.sql": one,
    "0002_bad.sql": "create table bad ();\n\nselect no_such_column;\n",
  });
  await assert.rejects(
    migrate(db, folder),
    /Migration 0002_bad\.sql:3 failed, nothing of it was applied: column "no_such_column" does not exist \(42703\)/,
  );
  assert.deepEqual(await db.query("select to_regclass('one')::text as one, to_regclass('bad') as bad"), [
    { one: "one", bad: null },
  ]);
  put(folder, { "0002_bad.sql": "create table bad ();" });
  assert.deepEqual(await migrate(db, folder), { applied: ["0002_bad.sql"] });
});

// docs/operate.md#when-a-migration-fails
test("an upgrade that is cut off leaves whole migrations: the next attempt continues, and the old version starts only if there is none", async () => {
  const db = await emptyDatabase();
  const before = { "0001_one.sql": one };
  const [old, next] = [folderOf(before), folderOf(before)];
  await migrate(db, old);
  const slow = "create table slow ();\nselect pg_sleep(60);\n";
  const cutOff = async (): Promise<void> => {
    const upgrading = openPool(db, { applicationName: "upgrade" });
    const refused = assert.rejects(migrate(upgrading, next));
    const cut = `select pg_terminate_backend(pid) as cut from pg_stat_activity
                 where application_name = 'upgrade' and datname = current_database() and query ~ 'pg_sleep'`;
    await until("the slow migration runs, and is cut off", async () => (await db.query(cut)).length > 0);
    await refused;
    await upgrading.end();
  };
  put(next, { "0002_slow.sql": slow });
  await cutOff();
  assert.deepEqual(await migrate(db, old), { applied: [] }, "nothing was applied");
  put(next, { "0002_two.sql": two, "0003_slow.sql": slow });
  rmSync(join(next, "0002_slow.sql"));
  await cutOff();
  await assert.rejects(migrate(db, old), /newer than this program: it has 0002_two/);
  assert.deepEqual(await db.query("select to_regclass('slow') as slow"), [{ slow: null }]);
  put(next, { "0003_slow.sql": "create table slow ();" });
  assert.deepEqual((await listPendingMigrations(db, next)).files, ["0003_slow.sql"]);
  assert.deepEqual(await migrate(db, next), { applied: ["0003_slow.sql"] });
});

test("refuses files that could not be applied safely", async () => {
  const db = await emptyDatabase();
  await assert.rejects(
    migrate(db, folderOf({ "1_one.sql": one })),
    /1_one\.sql: a migration is named NNNN_name\.sql/,
  );
  await assert.rejects(
    migrate(db, folderOf({ "0001_one.sql": one, "0001_uno.sql": one })),
    /0001_one\.sql and 0001_uno\.sql have the same number/,
  );
  await assert.rejects(
    migrate(db, folderOf({ "0001_one.sql": `${one}\ncommit;\n` })),
    /begins or ends a transaction/,
  );
});

const schema = `
  create type mood as enum ('good', 'bad');
  create domain slug as text check (value ~ '^[a-z]+$');
  create table parent (id bigint generated always as identity primary key, name slug not null, unique (name));
  create table child (
    id text collate "C" primary key, parent_id bigint not null references parent (id) on delete cascade,
    feeling mood default 'good', size int check (size > 0), twice int generated always as (size * 2) stored
  ) with (fillfactor = 70);
  comment on table child is 'What a child is';
  comment on column child.size is 'In cm';
  create index child_big on child (parent_id) where size > 100;
  create view big as select id from child where size > 100;
  create function touch() returns trigger language plpgsql as $$ begin return new; end $$;
  create trigger child_touch before update on child for each row execute function touch();
`;

test("the schema's dump shows every definition, no rows, and is the same however the schema was made", async () => {
  const first = await emptyDatabase();
  await migrate(first, folderOf({ "0001_schema.sql": schema }));
  const dump = await dumpSchema(first);
  for (const expected of [
    "create type mood as enum ('good', 'bad');",
    "create domain slug as text constraint slug_check CHECK ((VALUE ~ '^[a-z]+$'::text));",
    "id bigint generated always as identity not null",
    'id text collate "C" not null',
    "feeling mood default 'good'::mood",
    "twice integer generated always as ((size * 2)) stored",
    "constraint child_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES parent(id) ON DELETE CASCADE",
    ") with (fillfactor=70);",
    "-- What a child is",
    "comment on column child.size is 'In cm';",
    "CREATE INDEX child_big ON public.child USING btree (parent_id) WHERE (size > 100);",
    "create view big as\nSELECT id",
    "CREATE OR REPLACE FUNCTION public.touch()",
    "CREATE TRIGGER child_touch BEFORE UPDATE ON public.child FOR EACH ROW EXECUTE FUNCTION touch();",
    "create table schema_migration (",
  ]) {
    assert.ok(dump.includes(expected), `${expected}\nis not in\n${dump}`);
  }
  assert.ok(!dump.includes("0001_schema"), "no rows");

  const second = await emptyDatabase();
  await second.query("create table schema_migration (version int)"); // made before, then replaced: other ids, another order
  await second.query("drop table schema_migration");
  await second.query("create function zz() returns int language sql as 'select 1'; drop function zz()");
  await second.query(
    `alter role current_user in database ${(await second.query<{ d: string }>("select current_database() as d"))[0]?.d} set search_path = pg_temp`,
  );
  await second.query("set search_path = public");
  const [head = "", ...rest] = schema.split("  create table child");
  await migrate(
    second,
    folderOf({
      "0001_a.sql": `set local search_path = public;${head}`,
      "0002_b.sql": `set local search_path = public; create table child${rest.join("")}`,
    }),
  );
  assert.equal(await dumpSchema(second), dump);

  await first.query("alter table child alter column size set not null");
  assert.notEqual(await dumpSchema(first), dump);
});
