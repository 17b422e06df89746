// The store belongs to one installation: a copy of its database, or another one, removes nothing of it.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { claimStore, StoreOfAnother } from "#actions/upkeep/claim-store.ts";
import { sweepObjects } from "#actions/upkeep/sweep-objects.ts";
import { openLocalStore } from "#blobs/local-store.ts";
import type { BlobStore, ListedBlob } from "#blobs/store.ts";
import { takeSweep } from "#db/object-sweeps.ts";
import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { openLog } from "#lib/log.ts";
import { install, type Installation } from "../service.ts";

const LOG = openLog({ level: "silent", format: "json" });
const DAYS_AGO = new Date(Date.now() - 3 * 86_400_000);

let [production, staging]: (Installation & AsyncDisposable)[] = [];
let folder: string;
let store: BlobStore;
let account: string;

before(async () => {
  // The template of the tests is one installation: its clones are copies of it.
  [production, staging] = [await install(), await install()];
  for (const each of [production, staging]) await each.apply("account: acme");
  account = (await dbOf(production).query<{ id: string }>("select id from account"))[0]?.id ?? "";
});
beforeEach(async () => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  folder = await mkdtemp(join(tmpdir(), "latchkey-sweep-"));
  store = openLocalStore(folder);
});
after(async () => {
  for (const each of [production, staging]) await each?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const dbOf = (installation: Installation | undefined): Database =>
  must(installation, "the installation").database.db;

/** An object of some days ago. */
function put(key: string): string {
  const path = join(folder, key);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "x");
  utimesSync(path, DAYS_AGO, DAYS_AGO);
  return path;
}
const sweep = async (db: Database, isMeant = false): Promise<number | null> =>
  await sweepObjects({ db, blobs: store, log: LOG }, isMeant);
const nameOf = (index: number): string => String(index).padStart(24, "0");

test("a copy of the database, or another installation, sweeps nothing of a store that is not its own", async () => {
  await claimStore(dbOf(production), store);
  await claimStore(dbOf(production), store);
  const ours = put(`inputs/${account}/${nameOf(1)}`);
  await assert.rejects(claimStore(dbOf(staging), store), StoreOfAnother);
  assert.equal(await sweep(dbOf(staging)), null);
  assert.ok(existsSync(ours));
  assert.equal(await sweep(dbOf(production)), 1);
  assert.equal(existsSync(ours), false);
});

test("a service does not start with the store of another; `latchkey store adopt` says that it is meant", async () => {
  assert.ok(staging !== undefined);
  const own = join(staging.dataFolder, "objects");
  await claimStore(dbOf(production), openLocalStore(own));
  const refused = /The object store belongs to another installation.*`latchkey store adopt`/;
  await assert.rejects(staging.serve(), refused);
  const doctor = await staging.command("doctor");
  assert.match(doctor.stdout, refused);
  const adopted = await staging.command("store", "adopt");
  assert.deepEqual(
    [adopted.code, adopted.stdout],
    [0, "The object store now belongs to this installation.\n"],
  );
  assert.match((await staging.command("store", "adopt")).stdout, /already belonged to this installation/);
  await staging.serve();
  await assert.rejects(claimStore(dbOf(production), openLocalStore(own)), StoreOfAnother);
  const [entry] = await dbOf(staging).query<{ detail: string }>(
    "select detail from audit_entry where action = 'store.adopt'",
  );
  assert.deepEqual(JSON.parse(entry?.detail ?? ""), { store: "folder" });
});

test("`latchkey doctor` looks whose the store is, and claims none", async () => {
  assert.ok(staging !== undefined);
  const mark = join(staging.dataFolder, "objects", "latchkey-installation");
  rmSync(mark, { force: true });
  assert.equal((await staging.command("doctor")).code, 0);
  assert.equal(existsSync(mark), false);
});

test("of two that claim a store at once one has it", async () => {
  const claims = await Promise.allSettled(
    [production, staging].map(async (each) => await claimStore(dbOf(each), store)),
  );
  assert.equal(claims.filter(({ status }) => status === "fulfilled").length, 1);
});

test("only names that the service makes, of accounts of this database, are removed", async () => {
  const kept = [
    "results/2024/report.csv",
    `inputs/acct_ofAnother/${nameOf(1)}`,
    `results/acct_ofAnother/run_1/${"a".repeat(16)}.json.br`,
    `inputs/${account}/notes.txt`,
    `inputs/acct_ofAnother/${nameOf(2)}.0123456789ab.part`,
  ].map(put);
  const removed = [
    `inputs/${account}/${nameOf(1)}`,
    `steps/${account}/run_1/${"a".repeat(16)}`,
    `results/${account}/run_1/${"a".repeat(16)}.json.br`,
    `inputs/${account}/${nameOf(2)}.0123456789ab.part`,
  ].map(put);
  assert.equal(await sweep(dbOf(production)), 3);
  assert.deepEqual(
    [kept.every((path) => existsSync(path)), removed.some((path) => existsSync(path))],
    [true, false],
  );
});

test("a sweep that would remove more than a thousand and 5 % stops; one that is meant does not", async () => {
  const paths = Array.from({ length: 1_001 }, (_, index) => put(`inputs/${account}/${nameOf(index)}`));
  assert.equal(await sweep(dbOf(production)), null);
  assert.ok(paths.every((path) => existsSync(path)));
  assert.equal(await sweep(dbOf(production), true), 1_001);
  assert.ok(paths.every((path) => !existsSync(path)));
});

/** The store of an installation itself, which its commands use, and how many objects it has listed. */
function countListed(installation: Installation): () => number {
  folder = join(installation.dataFolder, "objects");
  const own = openLocalStore(folder);
  let listed = 0;
  store = {
    ...own,
    list: async function* (...listing): AsyncIterable<readonly ListedBlob[]> {
      for await (const page of own.list(...listing)) {
        listed += page.length;
        yield page;
      }
    },
  };
  return () => listed;
}

async function killedSweep(installation: Installation, point: string): Promise<void> {
  installation.environment["LATCHKEY_FAILPOINTS"] = point;
  const killed = await installation.command("store", "sweep");
  delete installation.environment["LATCHKEY_FAILPOINTS"];
  assert.equal(killed.code, null);
}

/** A listing after whose second page of 500 something happens. */
const whereAfterTwo = (blobs: BlobStore, happens: () => Promise<unknown>): BlobStore["list"] =>
  async function* (...listing): AsyncIterable<readonly ListedBlob[]> {
    let pages = 0;
    for await (const page of blobs.list(...listing)) {
      yield page;
      if (++pages === 2) await happens();
    }
  };

test("a sweep that was cut off goes on after the last page it finished, and what it had found is removed", async () => {
  assert.ok(production !== undefined);
  const db = dbOf(production);
  const listed = countListed(production);
  // One object of five is an orphan; the others are too young.
  const names = Array.from({ length: 1_500 }, (_, index) => `inputs/${account}/${nameOf(index)}`);
  const orphans = names.filter((_, index) => index % 5 === 0).map(put);
  const young = names.filter((_, index) => index % 5 !== 0).map(put);
  for (const path of young) utimesSync(path, new Date(), new Date());
  const cut = whereAfterTwo(store, async () => await Promise.reject(new Error("cut off")));
  await assert.rejects(sweepObjects({ db, blobs: { ...store, list: cut }, log: LOG }), /cut off/);
  assert.equal(listed(), 1_000);
  // A row that came back meanwhile, as from a backup, names the first that was found.
  await db.query(
    `insert into blob (key, account_id, purpose, size_bytes, sha256) values ($1, $2, 'input', 1, decode(repeat('00', 32), 'hex'))`,
    [names[0], account],
  );
  assert.equal(await sweep(db), 299);
  assert.equal(listed(), 1_500, "each object was listed once");
  assert.deepEqual(
    [orphans.filter((path) => existsSync(path)), young.every((path) => existsSync(path))],
    [[orphans[0]], true],
  );
  await db.query("delete from blob");
  await sweep(db);
  assert.equal(listed(), 1_500 + 1_201, "a pass that is over begins anew, at the first object");
  await assert.rejects(sweepObjects({ db, blobs: { ...store, list: cut }, log: LOG }), /cut off/);
  await db.query("update object_sweep set moved_at = moved_at - interval '25 hours'");
  const before = listed();
  await sweep(db);
  assert.equal(listed() - before, 1_200, "one that has stood still for a day begins anew");
});

test("one that an operator means stays meant when its process is killed and the worker goes on with it", async () => {
  assert.ok(production !== undefined);
  const db = dbOf(production);
  const listed = countListed(production);
  const paths = Array.from({ length: 1_500 }, (_, index) => put(`inputs/${account}/${nameOf(index)}`));
  await killedSweep(production, "sweep.after_page=kill:2");
  assert.equal(paths.filter((path) => existsSync(path)).length, 500);
  assert.equal(await sweep(db), 1_500);
  assert.equal(listed(), 500);
  assert.ok(paths.every((path) => !existsSync(path)));
});

test("of two processes that sweep, the one that came last goes on, and the other one stops", async () => {
  const db = dbOf(production);
  const paths = Array.from({ length: 1_500 }, (_, index) => put(`inputs/${account}/${nameOf(index)}`));
  const taken = whereAfterTwo(store, async () => {
    await takeSweep(db, { isMeant: true, orphanAgeMs: 0, forgottenMs: limits.sweepForgottenMs });
  });
  assert.equal(await sweepObjects({ db, blobs: { ...store, list: taken }, log: LOG }, true), null);
  assert.ok(
    paths.every((path) => !existsSync(path)),
    "its last page was under way, which does no harm",
  );
  assert.equal(await sweep(db), 1_000, "what the former one has on record");
});
