import { limits } from "./limits.ts";
import type { DataRecord, RecordBatches } from "./record.ts";

const NEWLINE = 0x0a;
/** A batch of long records ends early: many are read at once when a sort merges its chunks. */
const BATCH_BYTES_MAX = 128_000;

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

/** Records as newline-delimited JSON, read again. */
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
