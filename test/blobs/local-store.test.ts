import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openLocalStore } from "#blobs/local-store.ts";
import { BlobMissing } from "#blobs/store.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-blobs-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const store = openLocalStore(folder);

async function* bytesOf(...texts: string[]): AsyncIterable<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test("an object comes back as it was stored, whole or a range of it, with its size and hash", async () => {
  const blob = await store.put("inputs/acct_1/one", bytesOf("hello ", "", "world"));
  assert.equal(blob.sizeBytes, 11);
  assert.deepEqual(blob.sha256, createHash("sha256").update("hello world").digest());
  assert.equal(await textOf(store.open(blob.key)), "hello world");
  assert.equal(await textOf(store.open(blob.key, { start: 6, end: 8 })), "wor");
  assert.equal(statSync(join(folder, blob.key)).mode & 0o777, 0o600);
});

test("a stream that fails leaves nothing behind", async () => {
  async function* failing(): AsyncIterable<Uint8Array> {
    yield Buffer.from("half");
    throw new Error("cut");
  }
  await assert.rejects(store.put("inputs/acct_2/half", failing()), /cut/);
  assert.deepEqual(readdirSync(join(folder, "inputs/acct_2")), []);
  await assert.rejects(textOf(store.open("inputs/acct_2/half")), BlobMissing);
});

test("removing is quiet about what is not there, and a prefix takes half-written objects with it", async () => {
  await store.put("steps/acct_3/run_1/a", bytesOf("a"));
  await store.put("steps/acct_3/run_10/a", bytesOf("other"));
  writeFileSync(join(folder, "steps/acct_3/run_1/b.0123456789ab.part"), "left by a killed process");
  await store.remove(["steps/acct_3/run_1/none"]);
  await store.removeAll("steps/acct_3/run_1/");
  assert.deepEqual(readdirSync(join(folder, "steps/acct_3")), ["run_10"]);
  await store.removeAll("steps/acct_3/never_there/");
});

test("a listing gives every whole object under a prefix once, page by page, with its age, and nothing else", async () => {
  const keys = Array.from(
    { length: 7 },
    (_, index) => `inputs/acct_4/${index % 2 ? "deep/" : ""}object${index}`,
  );
  for (const key of keys) await store.put(key, bytesOf("x"));
  await store.put("inputs/acct_40/other", bytesOf("x"));
  writeFileSync(join(folder, "inputs/acct_4/half.0123456789ab.part"), "");
  writeFileSync(join(folder, "inputs/acct_4/not ours"), "");
  utimesSync(join(folder, keys[0] ?? ""), 1_000, 1_000);
  const pages = await Array.fromAsync(store.list("inputs/acct_4/", 3));
  assert.deepEqual(
    pages.map((page) => page.length),
    [3, 3, 1],
  );
  const listed = pages.flat();
  assert.deepEqual(listed.map(({ key }) => key).toSorted(), keys.toSorted());
  for (const { key, modifiedAt } of listed)
    assert.equal(Number(modifiedAt) === 1_000_000, key === keys[0], key);
  assert.deepEqual(await Array.fromAsync(store.list("inputs/nobody/", 3)), []);
  await assert.rejects(Array.fromAsync(store.list("../", 3)), /Invariant/);
});

test("what was never finished goes when nobody has touched it since; what is being written stays", async () => {
  const folderOf = (name: string): string => join(folder, "inputs/acct_5", name);
  await store.put("inputs/acct_5/whole.part", bytesOf("whole"));
  for (const name of ["old.0123456789ab.part", "new.0123456789ab.part"]) writeFileSync(folderOf(name), "");
  for (const name of ["old.0123456789ab.part", "whole.part"]) utimesSync(folderOf(name), 1_000, 1_000);
  assert.equal(await store.removeUnfinished(new Date(Date.now() - 60_000)), 1);
  assert.deepEqual(readdirSync(join(folder, "inputs/acct_5")).toSorted(), [
    "new.0123456789ab.part",
    "whole.part",
  ]);
  assert.equal(await openLocalStore(join(folder, "never-made")).removeUnfinished(new Date()), 0);
});

test("no key leaves the folder", async () => {
  for (const key of ["../outside", "inputs/../../outside", "/etc/passwd", "inputs", "inputs/a/..", ""]) {
    await assert.rejects(async () => await store.put(key, bytesOf("x")), /Invariant/, key);
  }
});
