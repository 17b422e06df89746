import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openLocalStore } from "#blobs/local-store.ts";
import { bytesOf, testStore } from "./store-suite.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-blobs-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const store = openLocalStore(folder);

testStore("folder", () => store);

test("an object is a file of its owner's alone, and there are no URLs of the store's own", async () => {
  const { key } = await store.put("inputs/acct_6/private", bytesOf("x"));
  assert.equal(statSync(join(folder, key)).mode & 0o777, 0o600);
  const download = { contentType: "a/b", contentDisposition: "attachment", cacheControl: "no-store" };
  assert.equal(await store.presign(key, { ...download, fromMs: Date.now(), lifetimeMs: 1_000 }), null);
});

test("a stream that fails leaves no file, not even a half-written one", async () => {
  async function* failing(): AsyncIterable<Uint8Array> {
    yield Buffer.from("half");
    throw new Error("cut");
  }
  await assert.rejects(store.put("inputs/acct_7/half", failing()), /cut/);
  assert.deepEqual(readdirSync(join(folder, "inputs/acct_7")), []);
});

test("a prefix takes half-written objects with it, and a listing shows none, nor what is not ours", async () => {
  await store.put("steps/acct_8/run_1/a", bytesOf("a"));
  writeFileSync(join(folder, "steps/acct_8/run_1/b.0123456789ab.part"), "left by a killed process");
  writeFileSync(join(folder, "steps/acct_8/run_1/not ours"), "");
  utimesSync(join(folder, "steps/acct_8/run_1/a"), 1_000, 1_000);
  const listed = (await Array.fromAsync(store.list("steps/acct_8/", 3))).flat();
  assert.deepEqual(listed, [{ key: "steps/acct_8/run_1/a", modifiedAt: new Date(1_000_000) }]);
  await store.removeAll("steps/acct_8/run_1/");
  assert.deepEqual(readdirSync(join(folder, "steps/acct_8")), []);
});

test("what was never finished goes when nobody has touched it since; what is being written stays", async () => {
  const folderOf = (name: string): string => join(folder, "inputs/acct_9", name);
  await store.put("inputs/acct_9/whole.part", bytesOf("whole"));
  for (const name of ["old.0123456789ab.part", "new.0123456789ab.part"]) writeFileSync(folderOf(name), "");
  for (const name of ["old.0123456789ab.part", "whole.part"]) utimesSync(folderOf(name), 1_000, 1_000);
  assert.equal(await store.removeUnfinished(new Date(Date.now() - 60_000), () => true), 1);
  assert.deepEqual(readdirSync(join(folder, "inputs/acct_9")).toSorted(), [
    "new.0123456789ab.part",
    "whole.part",
  ]);
  assert.equal(await openLocalStore(join(folder, "never-made")).removeUnfinished(new Date(), () => true), 0);
});
