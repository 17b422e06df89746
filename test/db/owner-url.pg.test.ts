import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { JOBS_VERSION } from "#db/runs/jobs.ts";
import type { Log } from "#lib/log.ts";
import { openLog } from "#lib/log.ts";
import { foreignEnvironment, readConfig } from "#service/settings/settings.ts";
import { openDatabase, type OlderSchema } from "#service/open-database.ts";
import { latchkey } from "../cli/program.ts";
import { createTestDatabase } from "../database.ts";
import { createSeparateRoles, type SeparateRoles } from "../service-role.ts";

// A PostgreSQL of somebody else, with a role that owns the schema and another one for the service.

const log: Log = openLog({ level: "silent", format: "json" });
const folder = mkdtempSync(join(tmpdir(), "latchkey-owner-"));
after(() => rmSync(folder, { recursive: true, force: true }));

async function open(
  environment: Readonly<Record<string, string>>,
  options: { readonly olderSchema?: OlderSchema } = {},
): Promise<void> {
  const config = readConfig({ LATCHKEY_DATA_DIR: folder, ...environment });
  await (await openDatabase(config, log, options)).close();
}

const ownersIn = async ({ administrator }: SeparateRoles): Promise<readonly string[]> =>
  (
    await administrator.query<{ owner: string }>(
      `select distinct pg_get_userbyid(relowner) as owner from pg_class
       where relnamespace::regnamespace::text in ('public', 'graphile_worker')`,
    )
  ).map(({ owner }) => owner);

describe("DATABASE_OWNER_URL", () => {
  test("the owner makes the schema, and the service's role may use it and no more", async () => {
    await using separate = await createSeparateRoles();
    const { environment, db, roles } = separate;
    // Several processes that start at once.
    await Promise.all([open(environment), open(environment), open(environment)]);
    assert.deepEqual(await ownersIn(separate), [roles.owner]);
    await db.query("select graphile_worker.add_job('execute_run', '{}', job_key => 'x')");
    assert.equal((await db.query("select 1 from graphile_worker.jobs")).length, 1);
    assert.equal((await db.query("select 1 from graphile_worker._private_jobs")).length, 1);
    for (const attempt of [
      "create table another (n int)",
      "create temporary table another (n int)",
      "drop table run",
    ])
      await assert.rejects(db.query(attempt), { code: "42501" }, attempt);
  });

  test("grants are made once, and what was granted besides is taken back", async () => {
    await using separate = await createSeparateRoles();
    const { environment, owner, roles } = separate;
    await open(environment);
    const rights = async () =>
      await owner.query(
        `select oid::regclass::text as name, relacl::text as acl, xmin::text as version from pg_class
         where relnamespace::regnamespace::text in ('public', 'graphile_worker') order by 1`,
      );
    const first = await rights();
    await open(environment);
    assert.deepEqual(await rights(), first, "the second start has written nothing");
    await owner.query(
      `grant delete on schema_migration to ${roles.service}; revoke insert on run from ${roles.service}`,
    );
    await open(environment);
    const [found] = await owner.query(
      `select has_table_privilege('${roles.service}', 'schema_migration', 'delete') as forges,
         has_table_privilege('${roles.service}', 'run', 'insert') as inserts`,
    );
    assert.deepEqual(found, { forges: false, inserts: true });
  });

  test("without it the role of DATABASE_URL migrates, and owns what it makes", async () => {
    await using separate = await createSeparateRoles();
    const { DATABASE_OWNER_URL } = separate.environment;
    await open({ DATABASE_URL: DATABASE_OWNER_URL });
    assert.deepEqual(await ownersIn(separate), [separate.roles.owner]);
  });

  test("an installation whose one role owned everything gets a second role, and what that one needs", async () => {
    await using separate = await createSeparateRoles();
    const { environment, db } = separate;
    await open({ DATABASE_URL: environment.DATABASE_OWNER_URL });
    await assert.rejects(open({ DATABASE_URL: environment.DATABASE_URL }), {
      name: "StartRefused",
      message: /may not change its schema.*DATABASE_OWNER_URL/,
    });
    await open(environment);
    await open({ DATABASE_URL: environment.DATABASE_URL });
    assert.deepEqual(await db.query("select 1 from run"), []);
  });

  test("a role that may change nothing and finds an empty database is told what to set", async () => {
    await using separate = await createSeparateRoles();
    await assert.rejects(open({ DATABASE_URL: separate.environment.DATABASE_URL }), {
      name: "StartRefused",
      message: /the role \S+_app of DATABASE_URL may not change its schema\. Set DATABASE_OWNER_URL/,
    });
  });

  test("another database, or one that can't be reached, is refused, and nothing is changed", async () => {
    await using separate = await createSeparateRoles();
    const other = await createTestDatabase();
    const { DATABASE_URL, DATABASE_OWNER_URL } = separate.environment;
    try {
      await assert.rejects(open({ DATABASE_URL, DATABASE_OWNER_URL: other.connectionString }), {
        name: "StartRefused",
        message: /lead to different databases/,
      });
    } finally {
      await other.drop();
    }
    assert.deepEqual(await ownersIn(separate), []);
    const wrong = new URL(DATABASE_OWNER_URL);
    wrong.password = "canary-password";
    await assert.rejects(open({ DATABASE_URL, DATABASE_OWNER_URL: wrong.href }), (error: Error) => {
      assert.match(error.message, /The database of DATABASE_OWNER_URL can't be opened/);
      assert.doesNotMatch(error.message, /canary/);
      return true;
    });
  });

  test("is refused without DATABASE_URL, and when it is not a URL", () => {
    assert.throws(
      () => readConfig({ DATABASE_OWNER_URL: "postgres://owner@db/latchkey" }),
      /Set both, or neither/,
    );
    assert.throws(
      () => readConfig({ DATABASE_URL: "postgres://db/latchkey", DATABASE_OWNER_URL: "db" }),
      /DATABASE_OWNER_URL must be a postgres:/,
    );
    assert.throws(() => readConfig({ LATCHKEY_MIGRATE: "never" }), /LATCHKEY_MIGRATE must be auto or off/);
  });

  test("is not handed to programs that a command starts", () => {
    const [DATABASE_URL, DATABASE_OWNER_URL] = ["postgres://app@db/latchkey", "postgres://owner@db/latchkey"];
    assert.deepEqual(
      foreignEnvironment({ DATABASE_URL, DATABASE_OWNER_URL, LATCHKEY_PORT: "1", PATH: "/bin" }),
      {
        PATH: "/bin",
      },
    );
  });
});

describe("LATCHKEY_MIGRATE=off", () => {
  const refused = async (environment: Readonly<Record<string, string>>, what: RegExp): Promise<void> =>
    await assert.rejects(open({ ...environment, LATCHKEY_MIGRATE: "off" }), (error: Error) => {
      assert.equal(error.name, "StartRefused");
      assert.match(error.message, what);
      assert.match(error.message, /run `latchkey migrate`|Run `latchkey migrate`/);
      return true;
    });

  test("a start refuses an empty database and an older one, and takes one that was migrated", async () => {
    await using separate = await createSeparateRoles();
    const { environment, owner } = separate;
    await refused(environment, /lacks the migration 0001_foundation\.sql/);
    assert.deepEqual(await ownersIn(separate), [], "it has changed nothing");
    await open({ ...environment, LATCHKEY_MIGRATE: "off" }, { olderSchema: "migrate" });
    // Without the owner's password anywhere near the service.
    await open({ DATABASE_URL: environment.DATABASE_URL, LATCHKEY_MIGRATE: "off" });

    const [last] = await owner.query<{ name: string }>(
      "delete from schema_migration where version = (select max(version) from schema_migration) returning name",
    );
    await refused(environment, new RegExp(`lacks one migration, starting with ${last?.name}\\.sql`));
  });

  test("`latchkey migrate` migrates all the same, without any key; until then other commands refuse", async () => {
    await using separate = await createSeparateRoles();
    const { DATABASE_URL } = separate.environment;
    const settings = { LATCHKEY_DATA_DIR: folder, LATCHKEY_MIGRATE: "off" };
    const early = await latchkey(["keys", "list"], { DATABASE_URL, ...settings });
    assert.deepEqual([early.code, early.stdout], [1, ""]);
    assert.match(early.stderr, /lacks the migration 0001_foundation\.sql.*run `latchkey migrate`/);
    const migrated = await latchkey(["migrate"], { ...separate.environment, ...settings });
    assert.deepEqual([migrated.code, migrated.stdout], [0, "The database is up to date\n"], migrated.stderr);
    const later = await latchkey(["keys", "list"], { DATABASE_URL, ...settings });
    assert.equal(later.code, 0, later.stderr);
  });

  test("refuses an older schema of the jobs, and a role without its grants", async () => {
    await using separate = await createSeparateRoles();
    const { environment, owner, roles } = separate;
    await open(environment);
    const [jobs] = await owner.query("select max(id) as version from graphile_worker.migrations");
    assert.deepEqual(jobs, { version: JOBS_VERSION }, "of the package that is installed");
    await owner.query("delete from graphile_worker.migrations where id = $1", [JOBS_VERSION]);
    await refused(environment, /lacks one migration, starting with graphile_worker \(its own schema\)/);
    await owner.query("insert into graphile_worker.migrations (id) values ($1)", [JOBS_VERSION]);
    await owner.query(`revoke update on run from ${roles.service}`);
    await refused(
      environment,
      /lacks privileges on table public\.run of \S+_owner|lacks privileges on table run of \S+_owner/,
    );
    await owner.query(`revoke all on schema_migration from ${roles.service}`);
    await refused(environment, /may not read the list of migrations/);
  });
});
