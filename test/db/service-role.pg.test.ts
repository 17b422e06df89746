import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeAudit } from "#actions/audit/close-audit.ts";
import { detachMonth } from "#actions/audit/detach-month.ts";
import { exportMonth } from "#actions/audit/export-month.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { startEmbeddedPostgres, type EmbeddedPostgres } from "#db/embedded/start.ts";
import { openPool, type Database } from "#db/connection/pool.ts";
import { openLog } from "#lib/log.ts";
import { generateSigningKey, openSigning, readSigningKey } from "#lib/signing.ts";
import { readConfig } from "#service/settings/settings.ts";
import { openDatabase, type OpenDatabase } from "#service/open-database.ts";
import { eventOf } from "../audit/audit-log.ts";
import { postmasterOf } from "../postmaster.ts";

// What somebody reaches who can make the service send SQL of their own, in an installation with the embedded PostgreSQL.

const DENIED = { code: "42501" };
let dataDir: string;
let database: OpenDatabase;
let server: EmbeddedPostgres;
let owner: Database;

before(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "latchkey-role-"));
  writeFileSync(join(dataDir, "master.key"), "the private keys of the vault", { mode: 0o600 });
  database = await openDatabase(
    readConfig({ LATCHKEY_DATA_DIR: dataDir }),
    openLog({ level: "silent", format: "json" }),
  );
  server = await startEmbeddedPostgres({ dataDir });
  owner = openPool(server.ownerConnection, { applicationName: "role-test", max: 2 });
});

after(async () => {
  await owner.end();
  await database.close();
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

// Finding M5: the service's role was the superuser of the embedded PostgreSQL.
test("the service's role reads no file of the server's machine, runs no program on it, and sees no password", async () => {
  const { db } = database;
  const keys = join(dataDir, "master.key");
  const attempts = [
    `select pg_read_file('${keys}')`,
    `select pg_read_binary_file('${keys}')`,
    `select pg_ls_dir('${dataDir}')`,
    `select pg_stat_file('${keys}')`,
    `select lo_import('${keys}')`,
    `copy throttle_slot from '${keys}'`,
    `copy throttle_slot from program 'id'`,
    `copy (select 1) to program 'cat > ${join(dataDir, "taken")}'`,
    `copy (select 1) to '${join(dataDir, "taken")}'`,
    "select rolpassword from pg_authid",
    "select * from pg_shadow",
    "alter system set archive_command = 'id'",
    "load 'auto_explain'",
    "set session_replication_role = replica",
    "set role latchkey",
    "alter role latchkey_app superuser",
    "create role another",
    "create database another",
    "grant pg_execute_server_program to latchkey_app",
  ];
  for (const attempt of attempts) await assert.rejects(db.query(attempt), DENIED, attempt);
  // The first of them is no empty promise: the owner may.
  assert.match(
    JSON.stringify(await owner.query(`select pg_read_file('${keys}') as text`)),
    /private keys|Permission denied/,
  );
});

test("it changes nothing of the schema, and neither migrations nor audit entries", async () => {
  const { db } = database;
  const attempts = [
    "create table another (n int)",
    "create temporary table another (n int)",
    "create schema another",
    "create function another() returns int language sql return 1",
    "create or replace function app_now() returns timestamptz language sql stable return now()",
    "alter table run add column another int",
    "alter table audit_entry disable trigger all",
    "alter table audit_entry owner to latchkey_app",
    "drop table throttle_slot",
    "drop function app_now()",
    "truncate throttle_slot",
    "create index on run (id)",
    "create trigger another before insert on run for each row execute function audit_entry_guard()",
    "create table graphile_worker.another (n int)",
    "drop table graphile_worker._private_jobs",
    "alter table graphile_worker._private_jobs disable row level security",
    "delete from schema_migration",
    "update schema_migration set sha256 = ''",
    "insert into graphile_worker.migrations (id) values (999)",
    "delete from audit_entry",
    "delete from audit_month",
    "insert into audit_month select 'installation', date '2020-01-01', 1, 9, h, h, 0, h, h, h || h from sha256('') h",
  ];
  for (const attempt of attempts) {
    await assert.rejects(
      // Under a superuser it would work, and is undone.
      db.transaction(async (tx) => {
        await tx.query(attempt);
        throw new Error("it was done");
      }),
      // 42501 insufficient_privilege.
      DENIED,
      attempt,
    );
  }
});

test("it exports a month of the audit log, but only the owner detaches it", async () => {
  const { db } = database;
  const keys = openSigning(readSigningKey(generateSigningKey())).audit;
  await recordAudit(db, keys, eventOf(null, 0), "2020-08-10T00:00:00.000Z");
  await closeAudit({ db, audit: keys, log: openLog({ level: "silent", format: "json" }) });
  const request = { month: "2020-08", file: join(dataDir, "2020-08.ndjson") };
  await exportMonth(db, keys, request);
  await assert.rejects(
    detachMonth(db, keys, request),
    /role latchkey_app may not remove .* DATABASE_OWNER_URL/,
  );
  assert.deepEqual(await db.query("select 1 as there from audit_entry where run_id = 'run_0'"), [
    { there: 1 },
  ]);
  assert.partialDeepStrictEqual(await detachMonth(owner, keys, request), { removed: 1 });
  assert.deepEqual(await db.query("select 1 from audit_entry where run_id = 'run_0'"), []);
});

test("it can't sign in to the server's other databases, and its password is in a file of its own", async () => {
  const { connection, ownerConnection } = server;
  assert.notEqual(connection.user, ownerConnection.user);
  assert.notEqual(connection.password, ownerConnection.password);
  for (const other of ["postgres", "template1"]) {
    const db = openPool({ ...connection, database: other }, { applicationName: "role-test", max: 1 });
    await assert.rejects(db.query("select 1"), DENIED, other);
    await db.end();
  }
  const { pid } = postmasterOf(dataDir);
  for (const file of [`/proc/${pid}/cmdline`, join(dataDir, "postgres.log")])
    for (const { password } of [connection, ownerConnection])
      assert.ok(!readFileSync(file, "utf8").includes(password), file);
  for (const name of ["postgres-password", "postgres-app-password"])
    assert.equal((statSync(join(dataDir, name)).mode & 0o777).toString(8), "600", name);
});

test("it may read and write every table, use every sequence and call every function, and owns none", async () => {
  const objects = await owner.query<{ object: string; owner: string; rights: string }>(
    `select kind || ' ' || name as object, pg_get_userbyid(owner) as owner, array_to_string(rights, ' ') as rights from (
       select case relkind when 'S' then 'sequence' when 'v' then 'view' else 'table' end as kind, c.oid::regclass::text as name, relowner as owner,
         array(select privilege from unnest(case relkind when 'S' then array['USAGE', 'SELECT', 'UPDATE']
           else array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'] end) as privilege
           where case relkind when 'S' then has_sequence_privilege('latchkey_app', c.oid, privilege)
             else has_table_privilege('latchkey_app', c.oid, privilege) end) as rights
       from pg_class c where relnamespace in ('public'::regnamespace, 'graphile_worker'::regnamespace) and relkind in ('r', 'p', 'v', 'm', 'f', 'S')
       union all
       select 'function', p.oid::regprocedure::text, proowner,
         array(select 'EXECUTE' where has_function_privilege('latchkey_app', p.oid, 'EXECUTE'))
       from pg_proc p where pronamespace in ('public'::regnamespace, 'graphile_worker'::regnamespace)
     ) as found`,
  );
  const expected: Readonly<Record<string, string>> = {
    "table schema_migration": "SELECT",
    "table graphile_worker.migrations": "SELECT",
    "table audit_entry": "SELECT INSERT UPDATE",
    "table audit_month": "SELECT",
    "view graphile_worker.jobs": "SELECT",
  };
  const byKind = { table: "SELECT INSERT UPDATE DELETE", sequence: "USAGE SELECT", view: "SELECT" };
  for (const { object, owner: whose, rights } of objects) {
    assert.equal(whose, "latchkey", object);
    const kind = object.slice(0, object.indexOf(" ")) as keyof typeof byKind | "function";
    assert.equal(rights, expected[object] ?? (kind === "function" ? "EXECUTE" : byKind[kind]), object);
  }
  const names = objects.map(({ object }) => object);
  for (const object of [...Object.keys(expected), "table run", "function app_now()"])
    assert.ok(names.includes(object), object);
  assert.ok(names.some((object) => object.startsWith("sequence ")));
  const [role] = await owner.query(
    `select rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls,
       (select count(*)::int from pg_auth_members where member = pg_roles.oid) as memberships
     from pg_roles where rolname = 'latchkey_app'`,
  );
  assert.deepEqual(role, {
    rolsuper: false,
    rolcreatedb: false,
    rolcreaterole: false,
    rolreplication: false,
    rolbypassrls: false,
    memberships: 0,
  });
});

test("it may use at once what a later migration makes", async () => {
  await owner.query("create table public.later (id bigint generated always as identity, n int)");
  await owner.query("create function public.later() returns int language sql return 1");
  await owner.query("create sequence public.later_number");
  const { db } = database;
  await db.query("insert into later (n) values (later()), (nextval('later_number'))");
  await db.query("update later set n = 2");
  assert.equal((await db.query("delete from later returning n")).length, 2);
  await assert.rejects(db.query("truncate later"), DENIED);
  await owner.query(
    "drop table public.later; drop function public.later(); drop sequence public.later_number",
  );
});
