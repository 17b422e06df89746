// Retention keeps up: rows go by the hundred, objects by the thousand, and neither waits for the other's failures.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { deleteOldKeys } from "#actions/keys/delete-old-keys.ts";
import { describePurgeLag, purgeOldRuns } from "#actions/runs/purge-runs.ts";
import { sweepObjects } from "#actions/upkeep/sweep-objects.ts";
import { openLocalStore } from "#blobs/local-store.ts";
import { StoreFailed, type BlobStore } from "#blobs/store.ts";
import type { Database } from "#db/connection/pool.ts";
import { readPurgeLag } from "#db/runs/purges.ts";
import { openLog } from "#lib/log.ts";
import { moveClock } from "../clock.ts";
import type { Installation } from "../service.ts";
import { testInAll } from "../tiers.ts";
import { installForRuns } from "./any-blueprint.ts";

const LOG = openLog({ level: "silent", format: "json" });
const DAY_MS = 86_400_000;

let installation: Installation & AsyncDisposable;
let db: Database;
let folder: string;
let store: BlobStore;

before(async () => {
  ({ installation, db } = await installForRuns());
  folder = await mkdtemp(join(tmpdir(), "latchkey-purge-"));
  store = openLocalStore(folder);
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Runs that ended two days ago, with a day's retention; `named`: each has a result in an object, whose name this gives. */
async function plant(name: string, count: number, named = false): Promise<void> {
  await db.query(
    `insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, metadata, ignored_keys, timeout_ms,
       retention_ms, status, started_at, ended_at, response_bytes)
     select 'run_' || $1 || i, gen_random_uuid(), account_id, blueprint.id, 1, api_key.id, '{"a":"b"}', '[]', 1000, $3, 'completed',
       app_now() - interval '2 d', app_now() - interval '2 d', 1
     from blueprint join api_key using (account_id), generate_series(1, $2::int) i`,
    [name, count, DAY_MS],
  );
  if (!named) return;
  await db.query(
    `with object as (
       insert into blob (key, account_id, run_id, purpose, size_bytes, sha256)
       select 'results/' || account_id || '/' || id || '/' || left(md5(id), 16) || '.json.br', account_id, id, 'result', 1, '\\x00' from run
       where id like 'run\\_' || $1 || '%' returning key, account_id, run_id
     ) insert into run_result (account_id, run_id, ordinal, key, total_records, json_bytes, blob_key)
     select account_id, run_id, 0, 'rows', 1, 1, key from object`,
    [name],
  );
}

const left = async (table: string, name: string): Promise<number> =>
  (await db.query(`select 1 from ${table} where run_id like 'run\\_' || $1 || '%'`, [name])).length;
const unpurged = async (name: string): Promise<number> =>
  (await db.query("select 1 from run where id like 'run\\_' || $1 || '%' and purged_at is null", [name]))
    .length;

/** The store, with what it was asked to remove. */
function watched(remove = async (keys: readonly string[]): Promise<void> => await store.remove(keys)) {
  const asked = { removed: [] as (readonly string[])[], listed: [] as string[] };
  const blobs: BlobStore = {
    ...store,
    remove: async (keys) => {
      asked.removed.push(keys);
      await remove(keys);
    },
    removeAll: async (prefix) => {
      asked.listed.push(prefix);
      await store.removeAll(prefix);
    },
  };
  return { blobs, asked };
}

test("runs without objects never ask the store, however many they are", async () => {
  await plant("bare", 1_200);
  const { blobs, asked } = watched();
  assert.equal(await purgeOldRuns({ db, blobs, log: LOG }), 1_200);
  assert.equal(await unpurged("bare"), 0);
  assert.deepEqual(asked, { removed: [], listed: [] });
});

test("objects go hundreds at a time, with the folders that they were alone in", async () => {
  await plant("named", 1_100, true);
  const [one] = await db.query<{ key: string }>("select key from blob where run_id = 'run_named1'");
  await store.put(one?.key ?? "", [Buffer.from("x")] as unknown as AsyncIterable<Uint8Array>);
  const { blobs, asked } = watched();
  assert.equal(await purgeOldRuns({ db, blobs, log: LOG }), 1_100);
  assert.deepEqual([await left("run_result", "named"), await left("blob", "named")], [0, 0]);
  assert.equal(asked.removed.flat().length, 1_100);
  assert.ok(asked.removed.length <= 3, `${asked.removed.length} requests`);
  assert.deepEqual(asked.listed, []);
  assert.equal(existsSync(join(folder, one?.key ?? "", "..")), false);
});

test("of a run that a worker has lost, what no row names is looked for", async () => {
  await plant("lost", 2);
  await db.query("update run set lease_epoch = 2 where id = 'run_lost1'");
  const [run] = await db.query<{ at: string }>(
    "select account_id || '/' || id as at from run where id = 'run_lost1'",
  );
  const { blobs, asked } = watched();
  await purgeOldRuns({ db, blobs, log: LOG });
  assert.deepEqual(asked.listed.toSorted(), [`results/${run?.at}/`, `steps/${run?.at}/`]);
});

test("a store that refuses keeps no row, and the sweep takes what stayed there", async () => {
  await plant("refused", 600, true);
  const [one] = await db.query<{ key: string }>("select key from blob where run_id = 'run_refused1'");
  const path = join(folder, one?.key ?? "");
  await store.put(one?.key ?? "", [Buffer.from("x")] as unknown as AsyncIterable<Uint8Array>);
  const { blobs } = watched(async () => {
    throw new StoreFailed("the object store refuses", "refused");
  });
  assert.equal(await purgeOldRuns({ db, blobs, log: LOG }), 600);
  assert.deepEqual([await unpurged("refused"), await left("blob", "refused")], [0, 0]);
  assert.ok(existsSync(path));
  await moveClock(db, "25 hours");
  assert.equal(await sweepObjects({ db, blobs: store, log: LOG }), 1);
  await moveClock(db, "0 hours");
  assert.equal(existsSync(path), false);
});

test("a run that somebody holds is left for the next time, and no other", async () => {
  await plant("held", 3);
  const client = await db.pool.connect();
  await client.query("begin; select from run where id = 'run_held2' for update");
  assert.equal(await purgeOldRuns({ db, blobs: store, log: LOG }), 2);
  assert.ok((await readPurgeLag(db)) > 20 * 3_600_000, "how late it is");
  assert.match(
    (await installation.command("doctor")).stdout,
    /look +data of ended runs is purged 2\d h late/,
  );
  await client.query("rollback");
  client.release();
  assert.equal(await purgeOldRuns({ db, blobs: store, log: LOG }), 1);
  assert.equal(await readPurgeLag(db), 0);
});

test("data is late when an hour has passed since its retention ended, and not before", async () => {
  await plant("late", 1);
  const lateBy = async (minutes: number): Promise<readonly string[]> => {
    await db.query("update run set retention_ms = $1 where id = 'run_late1'", [
      2 * DAY_MS - minutes * 60_000,
    ]);
    return await describePurgeLag(db);
  };
  assert.deepEqual(await lateBy(58), []);
  assert.match((await lateBy(62)).join(), /is purged 1 h late/);
  assert.equal(await purgeOldRuns({ db, blobs: store, log: LOG }), 1);
});

test("idempotency keys that are over go in parts, all of them", async () => {
  await db.query(
    `insert into idempotency_key (account_id, key_hash, fingerprint, expires_at, status, body)
     select id, sha256(i::text::bytea), '\\x00', app_now() + (i - 12000) * interval '1 s', 202, '{}'
     from account, generate_series(1, 12005) i`,
  );
  await deleteOldKeys(db);
  assert.equal((await db.query("select 1 from idempotency_key")).length, 5);
});

testInAll(
  "counts of requests and statements",
  "100,000 runs with an object each, behind a store that takes 20 ms: 1,000 a second",
  {},
  async () => {
    await plant("many", 100_000, true);
    await db.query("analyze");
    const { blobs } = watched(async () => await sleep(20));
    const began = performance.now();
    assert.equal(await purgeOldRuns({ db, blobs, log: LOG }), 100_000);
    const seconds = (performance.now() - began) / 1_000;
    console.log(`100,000 runs in ${seconds.toFixed(1)} s`);
    assert.ok(seconds < 100, `${seconds} s`);
  },
);

testInAll(
  "that runs without objects never ask the store",
  "350 bare runs behind a store that takes 20 ms: under a second",
  {},
  async () => {
    await plant("quick", 350);
    const slow: BlobStore = {
      ...store,
      remove: async () => await sleep(20),
      removeAll: async () => await sleep(20),
    };
    const began = performance.now();
    assert.equal(await purgeOldRuns({ db, blobs: slow, log: LOG }), 350);
    const ms = performance.now() - began;
    console.log(`350 runs in ${ms.toFixed(0)} ms`);
    assert.ok(ms < 1_000, `${ms} ms`);
  },
);
