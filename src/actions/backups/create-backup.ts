import type { FileHandle } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import { recordAudit } from "#db/audit-entries.ts";
import {
  eachObjectKey,
  withoutPurges,
  withSnapshot,
  BackupUnderWay,
  type Snapshot,
} from "#db/backups/snapshot.ts";
import type { Database } from "#db/connection/pool.ts";
import { BlobMissing, type BlobStore } from "#blobs/store.ts";
import { ExplainedError } from "#lib/explained-error.ts";
import { fileErrorCode, openNewFile, type NewFile } from "#lib/new-file.ts";
import type { Signing } from "#lib/signing.ts";
import { LATCHKEY_VERSION } from "#lib/version.ts";
import { sealStream } from "#vault/sealed-stream.ts";
import { writeFrame, type Totals } from "./frames.ts";

/** A backup could not be made, or a file is no backup that can be restored here. */
export class BackupRefused extends ExplainedError {}

/** The format of the file. A program reads its own and older ones. */
export const BACKUP_FORMAT = { format: "latchkey-backup", version: 1 } as const;

/** What was written. */
export interface WrittenBackup {
  readonly takenAt: string;
  readonly bytes: number;
  readonly rows: number;
  readonly objects: number;
  /** Objects to which rows refer and that are not in the store. */
  readonly missing: number;
  /** The key that opens the file. */
  readonly kid: string;
  /** The keys that open the values in it. */
  readonly masterKeys: readonly string[];
}

export interface BackupOptions {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly signing: Signing;
  /** The public key to which the file is sealed, and its id. */
  readonly recipient: { readonly kid: string; readonly publicJwk: string };
  readonly file: string;
  /** Bytes of tables and objects, roughly. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** A block of zstd; each chunk of the default 16 KiB is a task of its own for Node's thread pool. */
export const ZSTD_CHUNK_BYTES = 131_072;

const OBJECTS_AT_ONCE = 500;

/**
 * Writes all rows of one moment and the objects to which they refer into a new file, sealed, while the service runs. The rows are read in one
 * snapshot of the database. No run is purged meanwhile, so that no object is removed. The file appears when it is complete and on disk;
 * then the backup is recorded in the audit log. Throws BackupRefused, StoreFailed.
 */
export async function createBackup(options: BackupOptions): Promise<WrittenBackup> {
  const { db, signing, file, recipient } = options;
  const backup = await openBackup(file);
  try {
    const counts = newCounts();
    const { takenAt, masterKeys, bytes } = await withoutPurges(
      db,
      async () => await write(options, backup.handle, counts),
    );
    await backup.complete();
    const rows = Object.values(counts.rows).reduce((sum, each) => sum + each, 0);
    const { objects, missing } = counts;
    const written = { takenAt, bytes, rows, objects, missing, kid: recipient.kid, masterKeys };
    await recordAudit(db, signing.audit, {
      accountId: null,
      actor: { kind: "cli" },
      action: "backup.create",
      subjectId: "installation",
      detail: { taken_at: takenAt, kid: recipient.kid, bytes, rows, objects, missing },
    });
    return written;
  } catch (error) {
    await backup.discard();
    if (error instanceof BackupUnderWay)
      throw new BackupRefused("Another backup of this installation is being made. Wait until it has ended.");
    throw explainDisk(error, file);
  }
}

interface Counts {
  rows: Record<string, number>;
  sequences: Totals["sequences"];
  objects: number;
  missing: number;
}

const newCounts = (): Counts => ({ rows: {}, sequences: [], objects: 0, missing: 0 });

/** Moves on by what was read, within the total, which is an estimate. */
interface Meter {
  total: number;
  read(bytes: number): void;
}

function newMeter(onProgress: BackupOptions["onProgress"]): Meter {
  let done = 0;
  const meter: Meter = {
    total: 0,
    read: (bytes) => {
      done += bytes;
      onProgress?.(Math.min(done, meter.total), meter.total);
    },
  };
  return meter;
}

async function write(
  options: BackupOptions,
  handle: FileHandle,
  counts: Counts,
): Promise<{ readonly takenAt: string; readonly masterKeys: readonly string[]; readonly bytes: number }> {
  const { recipient, signing, onProgress } = options;
  const meter = newMeter(onProgress);
  const facts = Promise.withResolvers<Snapshot["facts"]>();
  const about = { ...BACKUP_FORMAT, latchkey: LATCHKEY_VERSION };
  let bytes = 0;
  const frames = allFrames(options, counts, meter, facts.resolve);
  await pipeline(
    frames,
    createZstdCompress({
      chunkSize: ZSTD_CHUNK_BYTES,
      params: { [constants.ZSTD_c_compressionLevel]: 1 },
    }),
    (compressed: AsyncIterable<Uint8Array>) =>
      sealStream(compressed, { publicJwk: recipient.publicJwk, about, mac: signing.backupMac }),
    async (sealed: AsyncIterable<Buffer>) => {
      for await (const chunk of sealed) {
        await handle.writeFile(chunk);
        bytes += chunk.length;
      }
    },
  );
  // Tables take other numbers of bytes on disk than in the file.
  onProgress?.(meter.total, meter.total);
  const { takenAt, kids } = await facts.promise;
  return { takenAt, masterKeys: kids, bytes };
}

/** Rows first: the snapshot, for whose sake the database keeps old versions of rows, ends before the objects are read. */
async function* allFrames(
  { db, blobs }: BackupOptions,
  counts: Counts,
  meter: Meter,
  onFacts: (facts: Snapshot["facts"]) => void,
): AsyncGenerator<Uint8Array> {
  const facts = yield* whileIn<Snapshot, Snapshot["facts"]>(
    async (work) => await withSnapshot(db, work),
    (snapshot) => rowFrames(snapshot, counts, meter),
  );
  onFacts(facts);
  for await (const keys of eachObjectKey(db, facts.takenAt, OBJECTS_AT_ONCE)) {
    for (const key of keys) {
      const first = await openObject(blobs, key);
      if (first === null) counts.missing += 1;
      else {
        counts.objects += 1;
        yield* writeFrame({ frame: "object", key }, metered(first, meter));
      }
    }
  }
  yield* writeFrame({ frame: "end", ...counts });
}

async function* rowFrames(
  snapshot: Snapshot,
  counts: Counts,
  meter: Meter,
): AsyncGenerator<Uint8Array, Snapshot["facts"]> {
  const { facts } = snapshot;
  meter.total = facts.objects.bytes + facts.tables.reduce((sum, { bytes }) => sum + bytes, 0);
  yield* writeFrame({
    frame: "manifest",
    takenAt: facts.takenAt,
    migrations: facts.migrations,
    masterKeys: facts.kids,
    signingKey: facts.signingKeyPrint,
  });
  for (const table of facts.tables) {
    const { name, columns } = table;
    async function* rows(): AsyncGenerator<Uint8Array> {
      counts.rows[name] = yield* metered(snapshot.readRows(table), meter);
    }
    yield* writeFrame({ frame: "table", name, columns }, rows());
  }
  counts.sequences = await snapshot.readSequences();
  return facts;
}

async function* metered<R>(
  source: AsyncGenerator<Uint8Array, R> | AsyncIterator<Uint8Array, R>,
  meter: Meter,
): AsyncGenerator<Uint8Array, R> {
  for (;;) {
    const next = await source.next();
    if (next.done === true) return next.value;
    meter.read(next.value.byteLength);
    yield next.value;
  }
}

/** Whether an object is there shows with its first bytes. null: the store has lost it. */
async function openObject(blobs: BlobStore, key: string): Promise<AsyncGenerator<Uint8Array> | null> {
  const source = blobs.open(key)[Symbol.asyncIterator]();
  try {
    const first = await source.next();
    return (async function* () {
      for (let next = first; next.done !== true; next = await source.next()) yield next.value;
    })();
  } catch (error) {
    if (error instanceof BlobMissing) return null;
    throw error;
  }
}

/**
 * Yields from a generator while `scope` is open, and returns what the generator returns. `scope` is of the kind that calls its function
 * with a resource and releases it afterwards, also when the reader of this generator goes away.
 */
async function* whileIn<R, T>(
  scope: (work: (resource: R) => Promise<void>) => Promise<void>,
  generate: (resource: R) => AsyncGenerator<Uint8Array, T>,
): AsyncGenerator<Uint8Array, T> {
  const opened = Promise.withResolvers<R>();
  const finished = Promise.withResolvers<void>();
  const closed = scope(async (resource) => {
    opened.resolve(resource);
    await finished.promise;
  });
  closed.catch(opened.reject);
  const resource = await opened.promise;
  try {
    const result = yield* generate(resource);
    finished.resolve();
    await closed;
    return result;
  } catch (error) {
    finished.reject(error);
    await closed.catch(() => {});
    throw error;
  } finally {
    // The reader went away.
    finished.reject(new Error("the backup was not read to its end"));
    await closed.catch(() => {});
  }
}

async function openBackup(file: string): Promise<NewFile> {
  const opened = await openNewFile(file).catch((error: unknown) => {
    throw explainDisk(error, file);
  });
  if (opened === undefined)
    throw new BackupRefused(`${file} already exists. Name a new file; nothing was written.`);
  return opened;
}

function explainDisk(error: unknown, file: string): unknown {
  const code = fileErrorCode(error);
  if (code === null) return error;
  return new BackupRefused(
    `The backup could not be written to ${dirname(file)} as ${basename(file)} (${code}). Check the folder and its free space; nothing was kept.`,
  );
}
