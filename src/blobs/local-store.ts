import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, opendir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { assert } from "#lib/assert.ts";
import {
  BlobMissing,
  isObjectKey,
  isObjectPrefix,
  type BlobStore,
  type ListedBlob,
  type StoredBlob,
} from "./store.ts";

/** An object that is being written, beside its place. */
const UNFINISHED = /\.[0-9a-f]{12}\.part$/;

/** Objects as files of one folder, readable by the owner alone. */
export function openLocalStore(folder: string): BlobStore {
  const pathOf = (key: string): string => {
    assert(isObjectKey(key), "an object key made by the server");
    return join(folder, key);
  };
  return {
    kind: "folder",
    put: async (key, bytes) => await putFile(pathOf(key), key, bytes),
    open: (key, range) => readFile(pathOf(key), key, range),
    // Only the service can reach the folder.
    presign: async () => null,
    remove: async (keys) => {
      for (const key of keys) await rm(pathOf(key), { force: true });
    },
    removeAll: async (prefix) =>
      await rm(pathOf(prefix.replace(/\/$/, "")), { recursive: true, force: true }),
    list: (prefix, pageSize) => listFiles(folder, prefix, pageSize),
    listUnfinished: (before) => listUnfinishedFiles(folder, before),
    removeUnfinished: async (before) => await removeUnfinishedFiles(folder, before),
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

async function* listFiles(
  folder: string,
  prefix: string,
  pageSize: number,
): AsyncIterable<readonly ListedBlob[]> {
  assert(isObjectPrefix(prefix), "a prefix made by the server");
  let page: ListedBlob[] = [];
  for await (const path of walk(join(folder, prefix))) {
    const key = relative(folder, path);
    // What is half-written is no object yet, and what else people put there is none of ours.
    if (UNFINISHED.test(key) || !isObjectKey(key)) continue;
    const modifiedAt = await modifiedAtOf(path);
    if (modifiedAt === null) continue;
    page.push({ key, modifiedAt });
    if (page.length < pageSize) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

async function* listUnfinishedFiles(folder: string, before: Date): AsyncIterable<string> {
  for await (const path of walk(folder)) {
    if (!UNFINISHED.test(path)) continue;
    const modifiedAt = await modifiedAtOf(path);
    if (modifiedAt !== null && modifiedAt < before) yield relative(folder, path);
  }
}

async function removeUnfinishedFiles(folder: string, before: Date): Promise<number> {
  let removed = 0;
  for await (const name of listUnfinishedFiles(folder, before)) {
    await rm(join(folder, name), { force: true });
    removed++;
  }
  return removed;
}

/** Every file under a folder, one after the other: a store of millions is never in memory as a whole. */
async function* walk(folder: string): AsyncIterable<string> {
  try {
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) yield* walk(path);
      else if (entry.isFile()) yield path;
    }
  } catch (error) {
    // Nothing was ever stored there, or another process has removed it meanwhile.
    if (!isMissing(error)) throw error;
  }
}

async function modifiedAtOf(path: string): Promise<Date | null> {
  try {
    return (await stat(path)).mtime;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

const isMissing = (error: unknown): boolean => (error as { code?: string }).code === "ENOENT";

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
    if (isMissing(error)) throw new BlobMissing(key);
    throw error;
  }
}
