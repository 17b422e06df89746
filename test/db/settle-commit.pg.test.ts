// docs/decisions/0026: a COMMIT whose answer is lost with its server is not taken for done because another transaction has the same id.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openPool, type Database } from "#db/connection/pool.ts";
import { startOwnDatabase, type OwnDatabase } from "../flow/own-database.ts";
import { eventually } from "../eventually.ts";
import { startCommitProxy } from "../idempotency/commit-proxy.ts";
import { testInAll } from "../tiers.ts";

const TRIES_MAX = 10;

const nextId = async (db: Database): Promise<bigint> => {
  const [row] = await db.query<{ id: string }>(
    "insert into other values (1) returning pg_current_xact_id()::text as id",
  );
  return BigInt(row?.id ?? 0);
};

const DEATHS: Readonly<Record<string, (own: OwnDatabase) => Promise<void>>> = {
  "its server is started again": async (own) => await own.restart("immediate"),
  "a process of its server is killed, and the server recovers": async ({ database: { db } }) => {
    const [row] = await db.query<{ pid: number }>("select pg_backend_pid() as pid");
    process.kill(row?.pid ?? 0, "SIGKILL");
    await eventually(
      "all were cut",
      async () =>
        await db.query("select 1").then(
          () => undefined,
          () => true,
        ),
    );
  },
};

for (const [what, die] of Object.entries(DEATHS)) {
  test(`a transaction is lost when ${what}: another one that is given its id does not settle it`, async () => {
    await using own = await startOwnDatabase();
    const { db } = own.database;
    await db.query("create table one (n int); create table other (n int)");
    let reused = false;
    for (let tries = 0; !reused && tries < TRIES_MAX; tries++) {
      const lost = db.transaction(
        async (tx) => {
          const [row] = await tx.query<{ id: string }>(
            "insert into one values (1) returning pg_current_xact_id()::text as id",
          );
          const id = BigInt(row?.id ?? 0);
          await die(own);
          // Its log may have been written after all: then its id is not given again.
          const first = await eventually("it answers", async () => await nextId(db).catch(() => undefined));
          reused = first <= id;
          for (let next = first; next < id;) next = await nextId(db);
        },
        { settle: true },
      );
      await assert.rejects(lost);
    }
    assert.ok(reused, "the id was given again");
    assert.deepEqual(await db.query("select n from one"), []);
  });
}

testInAll(
  "COMMITs that are cut before and behind a pooler are left to this tier, too (flow/pgbouncer)",
  "through a pooler, a connection that outlives its server settles the COMMITs of the next one",
  {},
  async () => {
    await using own = await startOwnDatabase();
    const { db, connectionString } = own.database;
    await db.query("create table one (n int)");
    const proxy = await startCommitProxy(connectionString, { cuts: "any" });
    const source = { connectionString: proxy.url, direct: connectionString };
    const pooled = openPool(source, { applicationName: "pooled", max: 2 });
    const insert = async (n: number): Promise<void> =>
      await pooled.transaction(async (tx) => void (await tx.query("insert into one values ($1)", [n])), {
        settle: true,
      });
    try {
      await insert(1);
      // What a server that was started again looks like, to a connection that a pooler has kept.
      await db.query("select pg_stat_reset_shared('wal')");
      proxy.start(1);
      await insert(2);
      assert.deepEqual(proxy.cuts, { after: 1, late: 0, before: 0 });
    } finally {
      await pooled.end();
      await proxy.close();
    }
    assert.deepEqual(await db.query("select n from one order by n"), [{ n: 1 }, { n: 2 }]);
  },
);
