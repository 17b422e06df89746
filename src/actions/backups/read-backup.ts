import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress } from "node:zlib";
import type { Signing } from "#lib/signing.ts";
import type { MasterKey } from "#vault/master-key.ts";
import { readSealedStream, SealedStreamError } from "#vault/sealed-stream.ts";
import { BACKUP_FORMAT, BackupRefused, ZSTD_CHUNK_BYTES } from "./create-backup.ts";
import { readFrames, type Frame, type Manifest, type Totals } from "./frames.ts";

export interface BackupFile {
  readonly file: string;
  /** The keyset with the key that opens the file. */
  readonly keys: MasterKey;
  readonly signing: Signing;
  /** Bytes of the file that were read. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** A backup that was read from its first byte to its last: nothing of it was cut off or changed. */
export interface VerifiedBackup {
  readonly manifest: Manifest;
  readonly totals: Totals;
}

/** Reads a backup to its end and keeps nothing. Throws BackupRefused. */
export async function verifyBackup(backup: BackupFile): Promise<VerifiedBackup> {
  const counts = { rows: {} as Record<string, number>, objects: 0 };
  let manifest: Manifest | null = null;
  let totals: Totals | null = null;
  for await (const { head, body } of framesOf(backup)) {
    if (totals !== null) throw incomplete(backup);
    if (head.frame === "manifest") manifest = head;
    if (head.frame === "end") totals = head;
    if (head.frame === "object") counts.objects += 1;
    if (head.frame === "table") counts.rows[head.name] = await countRows(body);
    else for await (const _ of body);
  }
  if (manifest === null || totals === null || totals.objects !== counts.objects) throw incomplete(backup);
  for (const [name, rows] of Object.entries(totals.rows))
    if (counts.rows[name] !== rows) throw incomplete(backup);
  return { manifest, totals };
}

const incomplete = ({ file }: BackupFile): BackupRefused =>
  new BackupRefused(
    `${file} is not complete: it has other numbers of rows or objects than it says. Nothing was written.`,
  );

const NEWLINE = 0x0a;

/** In COPY's text format every row is one line; a line break in a value is escaped. */
async function countRows(body: AsyncIterable<Uint8Array>): Promise<number> {
  let rows = 0;
  for await (const bytes of body)
    for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) rows += 1;
  return rows;
}

/** The frames of a backup. Throws BackupRefused, for a part that was cut off when it comes there. */
export async function* framesOf(backup: BackupFile): AsyncGenerator<Frame> {
  const { file, keys, signing } = backup;
  try {
    const sealed = await readSealedStream(bytesOf(backup));
    requireFormat(file, sealed.header.about);
    yield* readFrames(decompressed(sealed.open(keys, signing.backupMac)));
  } catch (error) {
    if (!(error instanceof SealedStreamError)) throw error;
    throw new BackupRefused(`${file} can't be restored. ${error.message} Nothing was written.`);
  }
}

/** An error of the sealed stream comes out as itself, and only where the reader has come to it. */
async function* decompressed(sealed: AsyncGenerator<Buffer>): AsyncGenerator<Uint8Array> {
  const source = Readable.from(sealed);
  const stream = createZstdDecompress({ chunkSize: ZSTD_CHUNK_BYTES });
  const copying = pipeline(source, stream);
  copying.catch(() => {});
  yield* stream as AsyncIterable<Uint8Array>;
  await copying;
}

/** The id of the key that opens the file, which its first line says. Throws BackupRefused. */
export async function readRecipient(file: string): Promise<string> {
  const source = bytesOf({ file });
  try {
    const { header } = await readSealedStream(source);
    requireFormat(file, header.about);
    return header.kid;
  } catch (error) {
    if (!(error instanceof SealedStreamError)) throw error;
    throw new BackupRefused(`${file} can't be restored. ${error.message} Nothing was written.`);
  } finally {
    await source.return(undefined);
  }
}

function requireFormat(file: string, about: Readonly<Record<string, unknown>>): void {
  const { format, version, latchkey } = about;
  if (format !== BACKUP_FORMAT.format)
    throw new BackupRefused(`${file} is not a backup of Latchkey. Nothing was written.`);
  if (typeof version !== "number" || version > BACKUP_FORMAT.version)
    throw new BackupRefused(
      `${file} was made by a newer version of Latchkey (${typeof latchkey === "string" ? latchkey.slice(0, 20) : "unknown"}). ` +
        "Restore it with that version or a later one. Nothing was written.",
    );
}

async function* bytesOf({
  file,
  onProgress,
}: Pick<BackupFile, "file" | "onProgress">): AsyncGenerator<Buffer> {
  const found = await stat(file).catch(() => null);
  if (found?.isFile() !== true)
    throw new BackupRefused(`There is no file ${file}, or this user may not read it. Nothing was written.`);
  let done = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: 262_144 }) as AsyncIterable<Buffer>) {
    done += chunk.length;
    onProgress?.(done, found.size);
    yield chunk;
  }
}
