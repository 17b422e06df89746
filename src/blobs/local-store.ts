import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import {
  link,
  mkdir,
  open,
  opendir,
  readFile as readWhole,
  rename,
  rm,
  rmdir,
  stat,
  type FileHandle,
} from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { assert } from "#lib/assert.ts";
import { walkInOrder } from "./walk-in-order.ts";
import {
  BlobMissing,
  diskFailure,
  isObjectKey,
  isObjectPrefix,
  MARK_NAME,
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
    put: async (key, bytes) => {
      try {
        return await putFile(pathOf(key), key, bytes);
      } catch (error) {
        throw diskFailure(folder, error);
      }
    },
    open: (key, range) => readFile(pathOf(key), key, range),
    // Only the service can reach the folder.
    presign: async () => null,
    readMark: async () => await readText(join(folder, MARK_NAME)),
    claim: async (mark) => await claimFolder(join(folder, MARK_NAME), mark),
    adopt: async (mark) => await replaceFile(join(folder, MARK_NAME), mark),
    remove: async (keys) => {
      for (const key of keys) await rm(pathOf(key), { force: true });
      // A run's folder goes with the last of its objects; an account's is for all that come.
      const folders = new Set(
        keys.filter((key) => key.split("/").length > 3).map((key) => dirname(pathOf(key))),
      );
      for (const each of folders) await rmdir(each).catch(() => {});
    },
    removeAll: async (prefix) =>
      await rm(pathOf(prefix.replace(/\/$/, "")), { recursive: true, force: true }),
    list: (prefix, pageSize, after) => listFiles(folder, prefix, pageSize, after),
    listUnfinished: (before, isOurs) => listUnfinishedFiles(folder, before, isOurs),
    removeUnfinished: async (before, isOurs) => await removeUnfinishedFiles(folder, before, isOurs),
  };
}

/** Of several that try, one writes it; a link is made only where nothing is. */
async function claimFolder(path: string, mark: string): Promise<string> {
  const found = await readText(path);
  if (found !== null) return found;
  const staging = await writeBeside(path, mark);
  try {
    await link(staging, path);
    await syncFolder(dirname(path));
  } catch (error) {
    if ((error as { code?: string }).code !== "EEXIST") throw error;
  } finally {
    await rm(staging, { force: true });
  }
  return (await readText(path)) ?? mark;
}

async function replaceFile(path: string, text: string): Promise<void> {
  await rename(await writeBeside(path, text), path);
  await syncFolder(dirname(path));
}

async function writeBeside(path: string, text: string): Promise<string> {
  const staging = `${path}.${randomBytes(6).toString("hex")}.part`;
  const file = await openNew(staging);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  return staging;
}

async function readText(path: string): Promise<string | null> {
  try {
    return await readWhole(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Written beside its place, synced, then renamed: a reader or a crash never meets half an object. */
async function putFile(path: string, key: string, bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob> {
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
    const file = await openNew(staging);
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

const OPEN_TRIES_MAX = 5;

/** Its folder goes when the last object in it is removed, which may be at this moment. */
async function openNew(path: string): Promise<FileHandle> {
  for (let tries = 1; ; tries++) {
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      return await open(path, "wx", 0o600);
    } catch (error) {
      if (!isMissing(error) || tries === OPEN_TRIES_MAX) throw error;
    }
  }
}

async function* listFiles(
  folder: string,
  prefix: string,
  pageSize: number,
  after = "",
): AsyncIterable<readonly ListedBlob[]> {
  assert(isObjectPrefix(prefix), "a prefix made by the server");
  let page: ListedBlob[] = [];
  for await (const key of walkInOrder(folder, prefix, after)) {
    // What is half-written is no object yet, and what else people put there is none of ours.
    if (UNFINISHED.test(key) || !isObjectKey(key)) continue;
    const modifiedAt = await modifiedAtOf(join(folder, key));
    if (modifiedAt === null) continue;
    page.push({ key, modifiedAt });
    if (page.length < pageSize) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

async function* listUnfinishedFiles(
  folder: string,
  before: Date,
  isOurs: (key: string) => boolean,
): AsyncIterable<string> {
  for await (const path of walk(folder)) {
    const name = relative(folder, path);
    if (!UNFINISHED.test(name) || !isOurs(name.replace(UNFINISHED, ""))) continue;
    const modifiedAt = await modifiedAtOf(path);
    if (modifiedAt !== null && modifiedAt < before) yield name;
  }
}

async function removeUnfinishedFiles(
  folder: string,
  before: Date,
  isOurs: (key: string) => boolean,
): Promise<number> {
  let removed = 0;
  for await (const name of listUnfinishedFiles(folder, before, isOurs)) {
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
