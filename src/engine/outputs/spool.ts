import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { diskFailure } from "#blobs/store.ts";
import type { RecordBatches } from "#domain/record.ts";
import { randomBase62 } from "#lib/new-id.ts";
import type { Redactor } from "#engine/redaction/redact.ts";

/** Number of records written. */
export interface RecordCounts {
  total: number;
  valid: number;
}

/** Encodes records as newline-delimited JSON, one per line, and counts them. */
export async function* encodeRecords(
  batches: RecordBatches,
  redact: Pick<Redactor, "lines">,
  counts: RecordCounts,
): AsyncIterable<Uint8Array> {
  for await (const batch of batches) {
    if (batch.length === 0) continue;
    counts.total += batch.length;
    for (const record of batch) if (record.isValid) counts.valid++;
    yield await redact.lines(batch);
  }
}

/** The claim that a scratch folder belongs to; null: not one of our names. */
export function readScratchName(name: string): { readonly runId: string; readonly epoch: number } | null {
  const match = /^(run_[0-9A-Za-z]+)-(\d{1,9})-[0-9A-Za-z]{6}$/.exec(name);
  return match && { runId: match[1] ?? "", epoch: Number(match[2]) };
}

/** Temporary files of one run. */
export class Scratch {
  readonly #parent: string;
  readonly #claim: string;
  /** null: not made yet. Most runs write no file. */
  #folder: string | null = null;

  constructor(parent: string, runId: string, epoch: number) {
    this.#parent = parent;
    this.#claim = `${runId}-${epoch}`;
  }

  /** Removes files that killed workers left of this run. Only the holder of its lease may call it. */
  static async sweep(parent: string, runId: string): Promise<void> {
    const left = await readdir(parent).catch(() => []);
    for (const name of left.filter((each) => each.startsWith(`${runId}-`))) {
      await rm(join(parent, name), { recursive: true, force: true });
    }
  }

  /** Writes a stream to a new file and returns a reader of it. Throws StoreFailed when the disk is full. */
  async keep(bytes: AsyncIterable<Uint8Array>): Promise<() => AsyncIterable<Uint8Array>> {
    try {
      return await this.#write(bytes);
    } catch (error) {
      throw diskFailure("scratch", this.#parent, error);
    }
  }

  async #write(bytes: AsyncIterable<Uint8Array>): Promise<() => AsyncIterable<Uint8Array>> {
    this.#folder ??= join(this.#parent, `${this.#claim}-${randomBase62(6)}`);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, randomBase62(12));
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(bytes);
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    } finally {
      await file.close();
    }
    return () => createReadStream(path) as AsyncIterable<Uint8Array>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#folder !== null) await rm(this.#folder, { recursive: true, force: true });
  }
}
