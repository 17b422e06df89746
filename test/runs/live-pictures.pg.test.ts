// docs/browser.md#watching-a-run: when pictures of a run's page are taken, and that they are gone at the end of its steps.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openLivePicture, watchRunPage } from "#actions/operators/watch-run-page.ts";
import { listTables } from "#db/backups/tables.ts";
import type { Database } from "#db/connection/pool.ts";
import type { Lease } from "#db/runs/lease.ts";
import { deleteUnwatched } from "#db/runs/live-pictures.ts";
import { purgeRun } from "#db/runs/purges.ts";
import { listWorkers, takeOverDeadWorkers } from "#db/runs/workers.ts";
import { LiveViews } from "#engine/live-views.ts";
import { Problem } from "#domain/problem.ts";
import { limits } from "#domain/limits.ts";
import { openLog } from "#lib/log.ts";
import { newId } from "#lib/new-id.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { until } from "../eventually.ts";

const PNG = Buffer.from("a picture");

let database: TestDatabase;
let db: Database;
/** The statements that live views have sent. */
let statements = 0;
let views: LiveViews;

before(async () => {
  database = await createTestDatabase();
  ({ db } = database);
  const counted: Database = {
    ...db,
    query: async (...asked: Parameters<Database["query"]>) => {
      statements++;
      return await db.query(...asked);
    },
  } as Database;
  views = new LiveViews({ db: counted, log: openLog({ level: "silent", format: "json" }) });
});
after(async () => await database?.drop());

/** A run that a worker executes. */
async function plant(): Promise<Lease> {
  const lease: Lease = { runId: newId("run_"), owner: newId("wrk_"), epoch: 1 };
  await db.transaction(async (tx) => {
    // What a run belongs to is of no interest here.
    await tx.query("set local session_replication_role = replica");
    await tx.query(
      "insert into worker (id, lock_key, hostname, pid) values ($1, 1 + (random() * 1e9)::int, 'h', 1)",
      [lease.owner],
    );
    await tx.query(
      `insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, metadata, ignored_keys, timeout_ms,
         retention_ms, status, progress_step, started_at, admitted_at, deadline_at, lease_owner, lease_epoch)
       values ($1, gen_random_uuid(), 'acct_x', 'bp', 1, 'key', '{}', '[]', 1000, 1000, 'running', 'running', app_now(), app_now(),
         app_now(), $2, $3)`,
      [lease.runId, lease.owner, lease.epoch],
    );
  });
  return lease;
}

/** A page that is always ready for a picture. */
const READY = { picture: async () => await Promise.resolve({ step: "steps[0] (goto /)", png: PNG }) };

const countRows = async ({ runId }: Lease): Promise<number> =>
  (await db.query("select 1 from live_picture where run_id = $1", [runId])).length;
const readPicture = async ({ runId }: Lease): Promise<Buffer> =>
  Buffer.concat(await Array.fromAsync(await openLivePicture({ db }, runId)));
const watch = async ({ runId }: Lease) => (await watchRunPage({ db }, runId)).picture;

test("while nobody watches, no picture is taken: one statement for all pages, and none while no page is open", async () => {
  statements = 0;
  await views.look();
  assert.equal(statements, 0);
  const leases = [await plant(), await plant(), await plant()];
  const ended = Promise.withResolvers<void>();
  const unwatched = { picture: async () => await Promise.reject(new Error("nobody watches")) };
  const during = leases.map(
    async (lease) => await views.during(lease, unwatched, async () => await ended.promise),
  );
  await views.look();
  assert.equal(statements, 1);
  ended.resolve();
  await Promise.all(during);
  assert.equal(statements, 1, "the end of a page that nobody watched costs nothing");
});

test("who watches gets the picture and its step, and it is gone when the steps have ended", async () => {
  const lease = await plant();
  await views.during(lease, READY, async () => {
    assert.equal(await watch(lease), null);
    await assert.rejects(readPicture(lease), Problem);
    await views.look();
    await until("a picture was taken", async () => (await watch(lease)) !== null);
    const picture = await watch(lease);
    assert.equal(picture?.step, "steps[0] (goto /)");
    assert.equal(picture.age_seconds, 0);
    assert.deepEqual(await readPicture(lease), PNG);
  });
  assert.equal(await countRows(lease), 0);
  await assert.rejects(readPicture(lease), Problem);
});

test("when nobody watches any more, no picture is taken, and the last one is removed", async () => {
  const lease = await plant();
  await views.during(lease, READY, async () => {
    await watch(lease);
    await views.look();
    await until("a picture was taken", async () => (await watch(lease)) !== null);
    await db.query("update live_picture set watched_until = app_now() where run_id = $1", [lease.runId]);
    await views.look();
    assert.equal(await countRows(lease), 0);
  });
});

test("a picture that is ready only after the steps have ended is not stored", async () => {
  const lease = await plant();
  const late = Promise.withResolvers<typeof picture>();
  const picture = { step: "steps[0]", png: PNG };
  await views.during(lease, { picture: async () => await late.promise }, async () => {
    await watch(lease);
    await views.look();
  });
  late.resolve(picture);
  await late.promise;
  await views.look();
  assert.deepEqual(await db.query("select png from live_picture where run_id = $1", [lease.runId]), [
    { png: null },
  ]);
});

test("a page that does not answer delays no other, and is asked once", async () => {
  const [stuck, other] = [await plant(), await plant()];
  const never = Promise.withResolvers<null>();
  let asked = 0;
  const silent = {
    picture: async () => {
      asked++;
      return await never.promise;
    },
  };
  await views.during(stuck, silent, async () => {
    await views.during(other, READY, async () => {
      await watch(stuck);
      await watch(other);
      await views.look();
      await views.look();
      await until("the other page was shown", async () => (await watch(other)) !== null);
    });
  });
  assert.equal(asked, 1);
  never.resolve(null);
});

test("a run that no worker executes is not watched, whatever is left of it is not shown, and a run that is unknown is missing", async () => {
  const lease = await plant();
  await watch(lease);
  await db.query(
    "update live_picture set step = 'steps[0]', png = $2, taken_at = app_now() where run_id = $1",
    [lease.runId, PNG],
  );
  await db.query("update run set lease_owner = null where id = $1", [lease.runId]);
  assert.equal(await watch(lease), null);
  await assert.rejects(readPicture(lease), Problem);
  const unwatched = await plant();
  await db.query("update run set lease_owner = null where id = $1", [unwatched.runId]);
  assert.equal(await watch(unwatched), null);
  assert.equal(await countRows(unwatched), 0);
  await assert.rejects(watchRunPage({ db }, newId("run_")), Problem);
});

test("watching counts for a few seconds; the row is not written again while more than half of them are left", async () => {
  const lease = await plant();
  const rowOf = async () =>
    (
      await db.query<{ version: string; leftMs: number }>(
        `select xmin::text as version, (extract(epoch from watched_until - app_now()) * 1000)::float8 as "leftMs"
         from live_picture where run_id = $1`,
        [lease.runId],
      )
    )[0];
  await watch(lease);
  const first = await rowOf();
  assert.ok((first?.leftMs ?? 0) <= limits.livePictureWatchedMs);
  await watch(lease);
  assert.equal((await rowOf())?.version, first?.version);
  await db.query("update live_picture set watched_until = app_now() + interval '1 s' where run_id = $1", [
    lease.runId,
  ]);
  await watch(lease);
  assert.ok(((await rowOf())?.leftMs ?? 0) > limits.livePictureWatchedMs / 2);
});

test("the picture of a worker that was lost is removed when its runs are taken over; housekeeping removes what nobody watches", async () => {
  const [lost, other] = [await plant(), await plant()];
  for (const lease of [lost, other]) {
    await watch(lease);
    await db.query(
      "update live_picture set step = 'steps[0]', png = $2, taken_at = app_now() where run_id = $1",
      [lease.runId, PNG],
    );
  }
  const dead = (await listWorkers(db)).filter(({ id }) => id === lost.owner);
  assert.equal(dead.length, 1);
  await takeOverDeadWorkers(db, dead);
  assert.deepEqual([await countRows(lost), await countRows(other)], [0, 1]);
  await deleteUnwatched(db);
  assert.equal(await countRows(other), 1);
  await db.query("update live_picture set watched_until = app_now() - interval '1 ms' where run_id = $1", [
    other.runId,
  ]);
  await deleteUnwatched(db);
  assert.equal(await countRows(other), 0);
});

test("a purge removes what is left of the picture, and no backup has any", async () => {
  const lease = await plant();
  await watch(lease);
  await db.query(
    "update run set status = 'cancelled', progress_step = 'cancelled', ended_at = app_now(), lease_owner = null where id = $1",
    [lease.runId],
  );
  await db.transaction(async (tx) => assert.notEqual(await purgeRun(tx, lease.runId), undefined));
  assert.equal(await countRows(lease), 0);
  const client = await db.pool.connect();
  try {
    const names = (await listTables(client)).map(({ name }) => name);
    assert.ok(names.includes("run") && !names.includes("live_picture"));
  } finally {
    client.release();
  }
});
