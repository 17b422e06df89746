import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { limits } from "#domain/limits.ts";
import { randomBase62 } from "#lib/new-id.ts";
import type { Redactor } from "./redact.ts";

/** How many records went by. */
export interface RecordCounts {
  total: number;
  valid: number;
}

const NEWLINE = 0x0a;
/** A batch of long records ends early: many are read at once when a sort merges its chunks. */
const BATCH_BYTES_MAX = 128_000;

/** Record sets as newline-delimited JSON, one record a line. Counts as it goes. */
export async function* encodeRecords(
  batches: RecordBatches,
  redact: Redactor,
  counts: RecordCounts,
): AsyncIterable<Uint8Array> {
  for await (const batch of batches) {
    if (batch.length === 0) continue;
    counts.total += batch.length;
    for (const record of batch) if (record.isValid) counts.valid++;
    yield Buffer.from(redact.lines(batch), "utf8");
  }
}

/** The lines of a byte stream, as bytes, without their newline. */
export async function* splitLines(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Buffer[]> {
  let rest: Buffer[] = [];
  for await (const chunk of bytes) {
    const buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = buffer.indexOf(NEWLINE); end >= 0; end = buffer.indexOf(NEWLINE, start)) {
      const tail = buffer.subarray(start, end);
      lines.push(rest.length > 0 ? Buffer.concat([...rest, tail]) : tail);
      rest = [];
      start = end + 1;
    }
    if (start < buffer.length) rest.push(buffer.subarray(start));
    if (lines.length > 0) yield lines;
  }
  if (rest.length > 0) yield [Buffer.concat(rest)];
}

export async function* decodeRecords(bytes: AsyncIterable<Uint8Array>): RecordBatches {
  let batch: DataRecord[] = [];
  let batchBytes = 0;
  for await (const lines of splitLines(bytes)) {
    for (const line of lines) {
      batch.push(JSON.parse(line.toString("utf8")) as DataRecord);
      batchBytes += line.length;
      if (batch.length >= limits.recordBatchSizeMax || batchBytes >= BATCH_BYTES_MAX) {
        yield batch;
        batch = [];
        batchBytes = 0;
      }
    }
  }
  if (batch.length > 0) yield batch;
}

/** Whose a scratch folder is; null for a name that we don't give. */
export function readScratchName(name: string): { readonly runId: string; readonly epoch: number } | null {
  const match = /^(run_[0-9A-Za-z]+)-(\d{1,9})-[0-9A-Za-z]{6}$/.exec(name);
  return match && { runId: match[1] ?? "", epoch: Number(match[2]) };
}

/** Files of one run, gone with it. */
export class Scratch {
  readonly #folder: string;

  constructor(parent: string, runId: string, epoch: number) {
    this.#folder = join(parent, `${runId}-${epoch}-${randomBase62(6)}`);
  }

  /** Removes what killed workers left of this run; whoever holds its lease is the only one that may. */
  static async sweep(parent: string, runId: string): Promise<void> {
    const left = await readdir(parent).catch(() => []);
    for (const name of left.filter((each) => each.startsWith(`${runId}-`))) {
      await rm(join(parent, name), { recursive: true, force: true });
    }
  }

  /** Writes a stream to a new file and gives a reader of it. */
  async keep(bytes: AsyncIterable<Uint8Array>): Promise<() => AsyncIterable<Uint8Array>> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, randomBase62(12));
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(bytes);
    } finally {
      await file.close();
    }
    return () => createReadStream(path) as AsyncIterable<Uint8Array>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
