// docs/database.md#behind-pgbouncer: what a start asks of DATABASE_URL and DATABASE_DIRECT_URL. A real pooler is in flow/pgbouncer.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { directSource, openPool, openSession, SESSION_TIMEOUTS_MS } from "#db/connection/pool.ts";
import { listPoolerProblems } from "#db/connection/pooler.ts";
import { ConfigError, readConfig } from "#service/settings/settings.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { limitSessions } from "../flow/bouncer.ts";

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
});
after(async () => await database?.drop());

/** The same server as both: a connection through a pooler has what its role has. */
const pooledSource = () => ({
  connectionString: "postgres://nowhere.invalid/x",
  direct: database.connectionString,
});

test("a connection through a pooler asks for no time limits, and a start wants them of its role", async () => {
  const { connectionString, db: direct } = database;
  const open = () =>
    openPool({ connectionString, direct: connectionString }, { applicationName: "pooled", max: 2 });
  const unlimited = open();
  const [problem = "", ...others] = await listPoolerProblems(unlimited, direct);
  await unlimited.end();
  assert.deepEqual(others, []);
  assert.match(
    problem,
    /wait without a limit \(idle_in_transaction_session_timeout, lock_timeout, statement_timeout\)/,
  );
  await limitSessions(direct);
  const limited = open();
  assert.deepEqual(await listPoolerProblems(limited, direct), []);
  const settings = await limited.query<{ name: string; ms: number }>(
    "select name, setting::int as ms from pg_settings where name = any($1)",
    [Object.keys(SESSION_TIMEOUTS_MS)],
  );
  await limited.end();
  assert.deepEqual(Object.fromEntries(settings.map(({ name, ms }) => [name, ms])), SESSION_TIMEOUTS_MS);
});

test("without a pooler nothing is asked for", async () => {
  assert.deepEqual(await listPoolerProblems(database.db, null), []);
});

test("another database, or another role, is no way past the pooler", async () => {
  const other = await createTestDatabase();
  try {
    const [problem] = await listPoolerProblems(database.db, other.db);
    assert.match(problem ?? "", /lead to different databases/);
  } finally {
    await other.drop();
  }
  const role = `${new URL(database.connectionString).pathname.slice(1)}_other`;
  await database.db.query(`create role ${role} login password 'a-password'`);
  const url = new URL(database.connectionString);
  [url.username, url.password] = [role, "a-password"];
  const ofOther = openPool({ connectionString: url.href }, { applicationName: "other", max: 2 });
  try {
    const problems = await listPoolerProblems(database.db, ofOther);
    assert.match(problems.join(), new RegExp(`DATABASE_DIRECT_URL has the role ${role}`));
  } finally {
    await ofOther.end();
    await database.db.query(`drop role ${role}`);
  }
});

test("what needs a session of the server goes past the pooler", async () => {
  const source = pooledSource();
  assert.deepEqual(directSource(source), { connectionString: source.direct });
  const session = await openSession(source, { applicationName: "session", onLost: () => {} });
  assert.deepEqual(await session.query("select 1 as one"), [{ one: 1 }]);
  await session.end();
});

test("DATABASE_DIRECT_URL without DATABASE_URL, or not of PostgreSQL, is refused", () => {
  for (const [environment, problem] of [
    [{ DATABASE_DIRECT_URL: "postgres://db/latchkey" }, /DATABASE_DIRECT_URL is set but DATABASE_URL is not/],
    [
      { DATABASE_URL: "postgres://pooler/latchkey", DATABASE_DIRECT_URL: "db" },
      /DATABASE_DIRECT_URL must be a postgres/,
    ],
  ] as const)
    assert.throws(
      () => readConfig(environment),
      (error) => error instanceof ConfigError && error.problems.some((each) => problem.test(each)),
    );
});
