import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database, PoolOptions } from "#db/connection/pool.ts";
import { assertDurable } from "#db/connection/durable.ts";
import { openPool, openSession, urlOf } from "#db/connection/pool.ts";
import { until } from "../eventually.ts";
import type { TestDatabase } from "../database.ts";
import { createTestDatabase } from "../database.ts";

let admin: TestDatabase;
const open: Database[] = [];
before(async () => {
  admin = await createTestDatabase();
  await admin.db.query("create table account_book (id int primary key, amount int not null)");
});
after(async () => {
  for (const db of open) await db.end();
  await admin.drop();
});

function pool(options: Partial<PoolOptions> = {}): Database {
  const db = openPool(admin, { applicationName: "pool-test", connectTimeoutMs: 20_000, ...options });
  open.push(db);
  return db;
}

async function backendOf(db: Pick<Database, "query">): Promise<number> {
  const [row] = await db.query<{ pid: number }>("select pg_backend_pid() as pid");
  assert.ok(row);
  return row.pid;
}

async function terminate(pid: number): Promise<void> {
  await admin.db.query("select pg_terminate_backend($1, 5000)", [pid]);
}

test("rows are values one can work with: int8 a number, exact beyond it, timestamptz a Date", async () => {
  const [row] = await pool().query(
    `select 9007199254740991::int8 as safe, 9007199254740993::int8 as big, array[1, null, 9007199254740993]::int8[] as list,
            '2026-01-02T03:04:05.678Z'::timestamptz as at, '\\x00ff'::bytea as bytes, count(*) as n from generate_series(1, 3)`,
  );
  assert.deepEqual(row, {
    safe: 9007199254740991,
    big: 9007199254740993n,
    list: [1, null, 9007199254740993n],
    at: new Date("2026-01-02T03:04:05.678Z"),
    bytes: Buffer.from([0, 255]),
    n: 3,
  });
});

test("a named statement is prepared once a connection", async () => {
  const db = pool({ max: 1 });
  for (const n of [1, 2, 3])
    assert.deepEqual(await db.query({ name: "double", text: "select $1::int * 2 as n", values: [n] }), [
      { n: n * 2 },
    ]);
  assert.deepEqual(await db.query("select name from pg_prepared_statements"), [{ name: "double" }]);
});

test("every connection carries its time-outs and its name", async () => {
  assert.deepEqual(
    await pool({ statementTimeoutMs: 1_001, lockTimeoutMs: 1_002, idleInTransactionTimeoutMs: 1_003 }).query(
      `select name, setting from pg_settings where name in
        ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'application_name') order by name`,
    ),
    [
      { name: "application_name", setting: "pool-test" },
      { name: "idle_in_transaction_session_timeout", setting: "1003" },
      { name: "lock_timeout", setting: "1002" },
      { name: "statement_timeout", setting: "1001" },
    ],
  );
});

test("the server gives up a statement that hangs, and its connection goes on", async () => {
  const db = pool({ max: 1, statementTimeoutMs: 200 });
  const backend = await backendOf(db);
  await assert.rejects(db.query("select pg_sleep(30)"), { code: "57014" });
  assert.equal(await backendOf(db), backend);
});

test("a server that does not answer at all is given up, in and out of a transaction", async () => {
  const db = pool({ max: 1, statementTimeoutMs: 200_000, queryTimeoutMs: 300 });
  await assert.rejects(db.query("select pg_sleep(100)"), /timeout/i);
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.query("select pg_sleep(100)").catch(() => {});
      await assert.rejects(tx.query("select 1"), /broke earlier/);
      throw new Error("as an action would wrap it");
    }),
    /as an action would wrap it/,
  );
  assert.deepEqual(
    await db.query("select 1 as one"),
    [{ one: 1 }],
    "the only place in the pool is free again",
  );
  const [row] = await admin.db.query<{ asleep: number }>(
    `select count(*)::int as asleep from pg_stat_activity where datname = current_database() and query = 'select pg_sleep(100)'
     and state = 'active'`,
  );
  assert.equal(row?.asleep, 2, "the server is still at both");
});

test("a black hole between us and the server: connecting fails in time, a query fails in time, nothing crashes", async () => {
  // Accepts and never answers, like a firewall that drops: `pg` alone waits forever. docs/decisions/0026.
  const sockets: Socket[] = [];
  const hole = createServer((socket) => sockets.push(socket.on("error", () => {})));
  await new Promise<void>((ready) => hole.listen(0, "127.0.0.1", ready));
  const { port } = hole.address() as AddressInfo;
  const db = openPool(
    { host: "127.0.0.1", port, user: "x", password: "x", database: "x" },
    { applicationName: "pool-test", connectTimeoutMs: 300 },
  );
  await assert.rejects(db.query("select 1"), /timeout/i);
  await db.end();
  for (const socket of sockets) socket.destroy();
  await new Promise((closed) => hole.close(closed));
});

test("a full pool says so in time instead of waiting forever", async () => {
  const db = pool({ max: 1, connectTimeoutMs: 20_000 });
  await db.query("select 1");
  db.pool.options.connectionTimeoutMillis = 200;
  const long = db.query("select pg_sleep(1)");
  await assert.rejects(db.query("select 1"), /timeout exceeded when trying to connect/);
  await long;
});

test("connections that the server ends, idle or in use, do not end the process; the pool goes on", async () => {
  const told: string[] = [];
  const db = pool({ max: 1, log: (message) => told.push(message) });
  const idle = await backendOf(db);
  await terminate(idle);
  await sleep(50);
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", /A database connection was lost/);

  const hanging = db.query("select pg_sleep(20), 'in use'");
  const failed = assert.rejects(hanging, { code: "57P01" });
  const end =
    "select pg_terminate_backend(pid, 5000) from pg_stat_activity where query like '%in use%' and pid <> pg_backend_pid()";
  await until("it runs, and is ended", async () => (await admin.db.query(end)).length > 0);
  await failed;

  await assert.rejects(
    db.transaction(async (tx) => {
      await terminate(await backendOf(tx));
      await tx.query("insert into account_book values (77, 1)");
    }),
  );
  // Checked out and silent: the listener on the client itself.
  const client = await db.pool.connect();
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  await terminate(rows[0]?.pid ?? 0);
  await sleep(50);
  client.release(true);
  assert.deepEqual(await db.query("select count(*) as n from account_book where id = 77"), [{ n: 0 }]);
});

test("a transaction is all or nothing", async () => {
  const db = pool({ max: 1 });
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.query("insert into account_book values (1, 100)");
      throw new Error("no");
    }),
    /^Error: no$/,
  );
  assert.deepEqual(await db.query("select * from account_book where id = 1"), []);
  const backend = await backendOf(db);
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.query("insert into account_book values (1, 100)");
      await tx.query("insert into account_book values (1, 100)");
    }),
    { code: "23505" },
  );
  assert.equal(await backendOf(db), backend, "an ordinary error costs no connection");
  assert.equal(
    await db.transaction(
      async (tx) => (await tx.query("insert into account_book values (1, 100) returning id")).length,
    ),
    1,
  );
  assert.deepEqual(await db.query("select * from account_book where id = 1"), [{ id: 1, amount: 100 }]);
});

test("a statement that is a transaction of its own is all or nothing, and nothing before its beforeCommit has ended", async () => {
  const db = pool({ max: 2 });
  const insert = { text: "insert into account_book values ($1, 1) returning id" };
  const count = async (id: number): Promise<unknown> =>
    (await db.query("select count(*) as n from account_book where id = $1", [id]))[0];
  const made = await db.transact<{ id: number }>({ ...insert, values: [90] }, {}, async (rows) => {
    assert.deepEqual(rows, [{ id: 90 }]);
    assert.deepEqual(await count(90), { n: 0 }, "not committed yet");
  });
  assert.deepEqual(made, [{ id: 90 }]);
  assert.deepEqual(await count(90), { n: 1 });
  const refuse = async (): Promise<void> => {
    throw new Error("no");
  };
  await assert.rejects(db.transact({ ...insert, values: [91] }, {}, refuse), /^Error: no$/);
  assert.deepEqual(await count(91), { n: 0 });
  await assert.rejects(db.transact({ ...insert, values: [90] }, {}, refuse), { code: "23505" });
  assert.deepEqual(await count(90), { n: 1 });
});

test("a statement that is a transaction of its own waits for a lock no longer than it was told, and the next one as long as before", async () => {
  const db = pool({ max: 2 });
  const update = { text: "update account_book set amount = 2 where id = 92" };
  const done = async (): Promise<void> => {};
  await db.query("insert into account_book values (92, 1)");
  await db.transaction(async (tx) => {
    await tx.query(update);
    await assert.rejects(db.transact(update, { lockTimeoutMs: 50 }, done), { code: "55P03" });
  });
  const [row] = await db.transact<{ timeout: string }>(
    { text: "select current_setting('lock_timeout') as timeout" },
    {},
    done,
  );
  assert.equal(row?.timeout, "5s");
});

test("statements that are sent together are all or nothing, and each sees what was committed before it began", async () => {
  const db = pool({ max: 1 });
  const put = (id: number) => ({
    text: "insert into account_book values ($1, 1) returning id",
    values: [id],
  });
  assert.deepEqual(await db.transactAll([put(401), { text: "select 1 as one" }]), [
    [{ id: 401 }],
    [{ one: 1 }],
  ]);
  // The second fails: the first is undone, its error is the one that is told, and the connection goes on.
  await assert.rejects(db.transactAll([put(402), put(401), put(403)]), { code: "23505" });
  const ids = async () => await db.query("select id from account_book where id between 401 and 403");
  assert.deepEqual(await ids(), [{ id: 401 }]);
  // Another session holds the row; what it writes meanwhile is seen by what follows the lock.
  const lock = { text: "select 1 from account_book where id = 401 for update" };
  const count = { text: "select amount from account_book where id = 401" };
  const waiting = await admin.db.transaction(async (tx) => {
    await tx.query("update account_book set amount = 7 where id = 401");
    const sent = db.transactAll([lock, count]);
    await sleep(200);
    return { sent };
  });
  assert.deepEqual((await waiting.sent)[1], [{ amount: 7 }]);
});

test("a transaction whose failed statement was swallowed is an error, never a false commit", async () => {
  const db = pool({ max: 1 });
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.query("insert into account_book values (2, 1)");
      await tx.query("select 1 / 0").catch(() => {});
    }),
    /was rolled back: a statement in it had failed/,
  );
  assert.deepEqual(await db.query("select * from account_book where id = 2"), []);
});

test("a transaction within one fails alone", async () => {
  const db = pool({ max: 1 });
  await db.transaction(async (tx) => {
    await tx.query("insert into account_book values (3, 1)");
    await assert.rejects(
      tx.transaction(async (inner) => {
        await inner.query("insert into account_book values (4, 1)");
        await inner.query("select 1 / 0");
      }),
      { code: "22012" },
    );
    await tx.transaction(async (inner) => await inner.query("insert into account_book values (5, 1)"));
  });
  assert.deepEqual(await db.query("select id from account_book where id in (3, 4, 5) order by id"), [
    { id: 3 },
    { id: 5 },
  ]);
});

test("a query that outlives its transaction is refused, not run outside of it", async () => {
  const db = pool({ max: 1 });
  let leaked: Database | undefined;
  await db.transaction(async (tx) => {
    leaked = tx;
    await tx.query("select 1");
  });
  await assert.rejects(
    leaked?.query("insert into account_book values (6, 1)") ?? Promise.resolve(),
    /the transaction is over/,
  );
});

test("a deadlock and a serialization failure are tried again when asked, and only then", async () => {
  const db = pool({ max: 4 });
  await db.query("insert into account_book values (10, 0), (11, 0)");
  let attempts = 0;
  let holding = 0;
  let bothHold = Promise.withResolvers<void>();
  const cross = (first: number, second: number, retry: boolean) =>
    db.transaction(
      async (tx) => {
        attempts += 1;
        await tx.query("update account_book set amount = amount + 1 where id = $1", [first]);
        // Each has one row and goes for the other's.
        holding += 1;
        if (holding === 2) bothHold.resolve();
        await bothHold.promise;
        await tx.query("update account_book set amount = amount + 1 where id = $1", [second]);
      },
      { retry },
    );
  const plain = await Promise.allSettled([cross(10, 11, false), cross(11, 10, false)]);
  assert.equal(plain.filter(({ status }) => status === "rejected").length, 1);
  [attempts, holding] = [0, 0];
  bothHold = Promise.withResolvers();
  await Promise.all([cross(10, 11, true), cross(11, 10, true)]);
  assert.equal(attempts, 3);
  assert.deepEqual(await db.query("select amount from account_book where id in (10, 11)"), [
    { amount: 3 },
    { amount: 3 },
  ]);

  attempts = 0;
  await assert.rejects(
    db.transaction(
      async (tx) => {
        attempts += 1;
        await tx.query("do $$ begin raise exception 'never' using errcode = '40001'; end $$");
      },
      { retry: true },
    ),
    { code: "40001" },
  );
  assert.equal(attempts, 3);
});

test("a session holds its lock as long as its connection, tells its loss once, and never reconnects", async () => {
  const losses: Error[] = [];
  const session = await openSession(admin, {
    applicationName: "pool-test",
    connectTimeoutMs: 20_000,
    onLost: (error) => losses.push(error),
  });
  await session.query("select pg_advisory_lock(4711)");
  const backend = await backendOf(session);
  assert.equal(await backendOf(session), backend);
  assert.deepEqual(await admin.db.query("select pg_try_advisory_lock(4711) as free"), [{ free: false }]);
  await terminate(backend);
  await sleep(50);
  assert.equal(losses.length, 1);
  await assert.rejects(session.query("select 1"));
  assert.equal(losses.length, 1);

  const other = await openSession(admin, {
    applicationName: "pool-test",
    connectTimeoutMs: 20_000,
    queryTimeoutMs: 200,
    onLost: (error) => losses.push(error),
  });
  await assert.rejects(other.query("select pg_sleep(5)"));
  await assert.rejects(other.query("select 1"));
  assert.equal(losses.length, 2);
  const closed = await openSession(admin, {
    applicationName: "pool-test",
    connectTimeoutMs: 20_000,
    onLost: (error) => losses.push(error),
  });
  await closed.end();
  assert.equal(losses.length, 2, "its own end is no loss");
});

test("boot accepts a durable server and refuses one that is not", async () => {
  await assertDurable(admin.db);
  const [row] = await admin.db.query<{ name: string }>("select current_database() as name");
  await admin.db.query(`alter database ${row?.name} set synchronous_commit = off`);
  await assert.rejects(assertDurable(pool({ max: 1 })), /synchronous_commit=off.*Set synchronous_commit=on/);
  await admin.db.query(`alter database ${row?.name} reset synchronous_commit`);
});

test("a source's URL leads to the same database, whatever its password and socket folder", () => {
  const source = { host: "/tmp/a b", port: 5432, user: "u", password: "p/@:%", database: "d" };
  assert.equal(urlOf(source), "postgresql://u:p%2F%40%3A%25@%2Ftmp%2Fa%20b:5432/d");
  assert.equal(urlOf({ connectionString: "postgresql://x/y" }), "postgresql://x/y");
});
