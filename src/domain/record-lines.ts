import { limits } from "./limits.ts";
import type { DataRecord, RecordBatches } from "./record.ts";

const NEWLINE = 0x0a;
const COMMA = 0x2c;
/** A batch of long records is limited, because a sort that merges its chunks reads many batches at once. */
const BATCH_BYTES_MAX = 128_000;

/** Reads records from newline-delimited JSON. */
export async function* decodeRecords(bytes: AsyncIterable<Uint8Array>): RecordBatches {
  for await (const list of listsOfLines(bytes, BATCH_BYTES_MAX)) {
    const records = JSON.parse(`[${list.toString("utf8")}]`) as DataRecord[];
    for (let start = 0; start < records.length; start += limits.recordBatchSizeMax)
      yield records.length <= limits.recordBatchSizeMax
        ? records
        : records.slice(start, start + limits.recordBatchSizeMax);
  }
}

/** The same for a few lines in memory. */
export const readRecords = (lines: Buffer): readonly DataRecord[] =>
  JSON.parse(`[${lines.toString("utf8").trimEnd().replaceAll("\n", ",")}]`) as DataRecord[];

/**
 * Turns lines of JSON into the items of a list, without its brackets: several at a time, up to about the given bytes. A line break inside
 * a JSON string is escaped, so every raw line break separates lines.
 */
async function* listsOfLines(
  bytes: AsyncIterable<Uint8Array>,
  bytesMax: number,
): AsyncGenerator<Buffer, void, undefined> {
  let rest: Buffer[] = [];
  for await (const chunk of bytes) {
    // A copy: commas are written into it.
    const buffer = Buffer.from(chunk);
    let start = 0;
    while (start < buffer.length) {
      const end = endOfLines(buffer, start, start + bytesMax);
      if (end === -1) break;
      const lines = buffer.subarray(start, end);
      const list = rest.length === 0 ? lines : Buffer.concat([...rest, lines]);
      rest = [];
      start = end + 1;
      commasFor(list);
      if (list.length > 0) yield list;
    }
    if (start < buffer.length) rest.push(buffer.subarray(start));
  }
  const list = Buffer.concat(rest);
  commasFor(list);
  if (list.length > 0) yield list;
}

/** The last line break before `wanted`, or else the first after it; -1: there is none. */
function endOfLines(buffer: Buffer, start: number, wanted: number): number {
  const before = buffer.lastIndexOf(NEWLINE, Math.min(wanted, buffer.length) - 1);
  return before >= start ? before : buffer.indexOf(NEWLINE, start);
}

function commasFor(lines: Buffer): void {
  for (let at = lines.indexOf(NEWLINE); at !== -1; at = lines.indexOf(NEWLINE, at + 1)) lines[at] = COMMA;
}
