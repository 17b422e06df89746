// docs/decisions/0026: a COMMIT whose answer is lost with its server is not taken for done because another transaction has the same id.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "#db/connection/pool.ts";
import { startOwnDatabase, type OwnDatabase } from "../flow/own-database.ts";
import { eventually } from "../eventually.ts";

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
