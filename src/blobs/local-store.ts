import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { assert } from "#lib/assert.ts";
import { BlobMissing, type BlobStore, type StoredBlob } from "./store.ts";

const KEY = /^[0-9A-Za-z_-]+(\/[0-9A-Za-z_.-]+)+$/;

/** Objects as files of one folder, readable by the owner alone. */
export function openLocalStore(folder: string): BlobStore {
  const pathOf = (key: string): string => {
    assert(KEY.test(key) && !key.includes(".."), "an object key made by the server");
    return join(folder, key);
  };
  return {
    put: async (key, bytes) => await putFile(pathOf(key), key, bytes),
    open: (key, range) => readFile(pathOf(key), key, range),
    remove: async (keys) => {
      for (const key of keys) await rm(pathOf(key), { force: true });
    },
    removeAll: async (prefix) =>
      await rm(pathOf(prefix.replace(/\/$/, "")), { recursive: true, force: true }),
  };
}

/** Written beside its place, synced, then renamed: a reader or a crash never meets half an object. */
async function putFile(path: string, key: string, bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const staging = `${path}.${randomBytes(6).toString("hex")}.part`;
  const hash = createHash("sha256");
  let sizeBytes = 0;
  async function* measured(): AsyncIterable<Uint8Array> {
    for await (const chunk of bytes) {
      hash.update(chunk);
      sizeBytes += chunk.byteLength;
      yield chunk;
    }
  }
  try {
    const file = await open(staging, "wx", 0o600);
    try {
      await file.writeFile(measured());
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(staging, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await rm(staging, { force: true });
    throw error;
  }
  return { key, sizeBytes, sha256: hash.digest() };
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function* readFile(
  path: string,
  key: string,
  range?: { readonly start: number; readonly end: number },
): AsyncIterable<Uint8Array> {
  try {
    yield* createReadStream(path, range ?? {}) as AsyncIterable<Uint8Array>;
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") throw new BlobMissing(key);
    throw error;
  }
}
