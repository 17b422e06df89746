import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { BlobMissing, type BlobStore } from "#blobs/store.ts";

export async function* bytesOf(...texts: (string | Buffer)[]): AsyncIterable<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

export async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(bytes)).toString();
}

/** More than one part of an upload to S3, and no whole number of them. */
const LARGE_BYTES = 12_000_003;

export async function* largeBytes(): AsyncIterable<Buffer> {
  for (let left = LARGE_BYTES; left > 0; left -= 100_000)
    yield Buffer.alloc(Math.min(left, 100_000), left % 251);
}

async function keysIn(store: BlobStore, prefix: string): Promise<readonly string[]> {
  const pages = await Array.fromAsync(store.list(prefix, 100));
  return pages
    .flat()
    .map(({ key }) => key)
    .toSorted();
}

interface SuiteOptions {
  readonly skip?: string | false;
  /** Why ranges, and objects that were sent in parts, are not looked at. */
  readonly skipParts?: string | false;
}

/** What every store promises (`BlobStore`). */
export function testStore(kind: string, open: () => BlobStore, options: SuiteOptions = {}): void {
  const { skip = false, skipParts = skip } = options;
  const promise = (name: string, body: (store: BlobStore) => Promise<void>): void => {
    test(`${kind}: ${name}`, { skip }, async () => await body(open()));
  };
  const promiseOfParts = (name: string, body: (store: BlobStore) => Promise<void>): void => {
    test(`${kind}: ${name}`, { skip: skipParts }, async () => await body(open()));
  };

  promise("an object comes back as it was stored, whole, with its size and hash", async (store) => {
    const blob = await store.put("inputs/acct_1/one", bytesOf("hello ", "", "world"));
    assert.equal(blob.sizeBytes, 11);
    assert.deepEqual(blob.sha256, createHash("sha256").update("hello world").digest());
    assert.equal(await textOf(store.open(blob.key)), "hello world");
    assert.equal((await store.put("inputs/acct_1/empty", bytesOf())).sizeBytes, 0);
    assert.equal(await textOf(store.open("inputs/acct_1/empty")), "");
  });

  promiseOfParts("a range of an object is that range", async (store) => {
    await store.put("inputs/acct_1/ranged", bytesOf("hello world"));
    for (const [start, end, text] of [
      [6, 8, "wor"],
      [0, 0, "h"],
      [10, 10, "d"],
      [0, 10, "hello world"],
    ] as const)
      assert.equal(await textOf(store.open("inputs/acct_1/ranged", { start, end })), text);
  });

  promiseOfParts(
    "an object of many parts is the same, also when it is read slowly or left half-way",
    async (store) => {
      const whole = Buffer.concat(await Array.fromAsync(largeBytes()));
      const blob = await store.put("results/acct_1/run_1/large", largeBytes());
      assert.equal(blob.sizeBytes, LARGE_BYTES);
      assert.deepEqual(blob.sha256, createHash("sha256").update(whole).digest());
      const read: Uint8Array[] = [];
      for await (const chunk of store.open(blob.key)) {
        if (read.length < 5) await sleep(20);
        read.push(chunk);
      }
      assert.ok(Buffer.concat(read).equals(whole));
      const range = { start: 5_242_870, end: 10_485_770 };
      const part = Buffer.concat(await Array.fromAsync(store.open(blob.key, range)));
      assert.ok(part.equals(whole.subarray(range.start, range.end + 1)));
      for await (const chunk of store.open(blob.key)) {
        assert.ok(chunk.length > 0);
        break;
      }
    },
  );

  promise("a stream that fails leaves nothing behind, after little or much", async (store) => {
    for (const [key, sent] of [
      ["inputs/acct_2/little", 1],
      ["inputs/acct_2/much", 110],
    ] as const) {
      const failing = async function* (): AsyncIterable<Uint8Array> {
        for (let count = 0; count < sent; count++) yield Buffer.alloc(100_000);
        throw new Error("cut");
      };
      await assert.rejects(store.put(key, failing()), /^Error: cut$/);
      await assert.rejects(textOf(store.open(key)), BlobMissing);
    }
    assert.deepEqual(await keysIn(store, "inputs/acct_2/"), []);
    assert.deepEqual(
      await Array.fromAsync(store.listUnfinished(new Date(Date.now() + 3_600_000), () => true)),
      [],
    );
  });

  promise("what is not there is BlobMissing, and removing it is no error", async (store) => {
    await assert.rejects(textOf(store.open("inputs/acct_3/none")), BlobMissing);
    await assert.rejects(textOf(store.open("inputs/acct_3/none", { start: 0, end: 5 })), BlobMissing);
    await store.remove(["inputs/acct_3/none"]);
    await store.remove([]);
    await store.put("inputs/acct_3/two", bytesOf("2"));
    await store.remove(["inputs/acct_3/none", "inputs/acct_3/two"]);
    await assert.rejects(textOf(store.open("inputs/acct_3/two")), BlobMissing);
  });

  promise("a prefix is removed whole, and nothing that only begins like it", async (store) => {
    for (const key of ["run_1/a", "run_1/deep/b", "run_10/a"])
      await store.put(`steps/acct_3/${key}`, bytesOf(key));
    await store.removeAll("steps/acct_3/run_1/");
    assert.deepEqual(await keysIn(store, "steps/acct_3/"), ["steps/acct_3/run_10/a"]);
    await store.removeAll("steps/acct_3/never_there/");
  });

  promise("a listing gives every object under a prefix once, page by page, with its age", async (store) => {
    const keys = Array.from(
      { length: 7 },
      (_, index) => `inputs/acct_4/${index % 2 ? "deep/" : ""}object${index}`,
    );
    for (const key of keys) await store.put(key, bytesOf("x"));
    await store.put("inputs/acct_40/other", bytesOf("x"));
    const pages = await Array.fromAsync(store.list("inputs/acct_4/", 3));
    assert.deepEqual(
      pages.map((page) => page.length),
      [3, 3, 1],
    );
    assert.deepEqual(
      pages
        .flat()
        .map(({ key }) => key)
        .toSorted(),
      keys.toSorted(),
    );
    for (const { key, modifiedAt } of pages.flat())
      assert.ok(Math.abs(modifiedAt.getTime() - Date.now()) < 600_000, key);
    assert.deepEqual(await Array.fromAsync(store.list("inputs/nobody/", 3)), []);
    await assert.rejects(Array.fromAsync(store.list("../", 3)), /Invariant/);
  });

  promise("a listing is in the order of the keys, and goes on after any of them", async (store) => {
    const keys = ["o-1", "o.1", "o/1", "o/2/3", "o/20", "o1", "p/1"].map((name) => `steps/acct_4/${name}`);
    for (const key of keys.toReversed()) await store.put(key, bytesOf("x"));
    const after = async (key?: string): Promise<readonly string[]> =>
      (await Array.fromAsync(store.list("steps/acct_4/", 2, key))).flat().map((each) => each.key);
    assert.deepEqual(await after(), keys);
    for (const [index, key] of keys.entries()) assert.deepEqual(await after(key), keys.slice(index + 1), key);
    assert.deepEqual(await after("inputs/acct_9/later"), keys, "of a prefix before this one");
  });

  promiseOfParts("many at once, small and large, disturb each other in nothing", async (store) => {
    const contents = Array.from({ length: 24 }, (_, index) =>
      randomBytes(index % 8 === 0 ? 6_000_000 : 20_000),
    );
    await Promise.all(
      contents.map(async (content, index) => store.put(`steps/acct_5/run_1/o${index}`, bytesOf(content))),
    );
    const read = await Promise.all(
      contents.map(async (_, index) =>
        Buffer.concat(await Array.fromAsync(store.open(`steps/acct_5/run_1/o${index}`))),
      ),
    );
    assert.ok(read.every((bytes, index) => bytes.equals(contents[index] ?? Buffer.alloc(0))));
    await store.removeAll("steps/acct_5/run_1/");
    assert.deepEqual(await keysIn(store, "steps/acct_5/"), []);
  });

  promise("no key leaves the place of the objects", async (store) => {
    for (const key of ["../outside", "inputs/../../outside", "/etc/passwd", "inputs", "inputs/a/..", ""]) {
      await assert.rejects(async () => await store.put(key, bytesOf("x")), /Invariant/, key);
      await assert.rejects(async () => await textOf(store.open(key)), /Invariant/, key);
      await assert.rejects(async () => await store.remove([key]), /Invariant/, key);
    }
  });
}
