import { createBrotliCompress } from "node:zlib";
import { promisify } from "node:util";
import type { NewResult } from "#db/runs/run-results.ts";
import { limits } from "#domain/limits.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { randomBase62 } from "#lib/new-id.ts";
import { RESULT_COMPRESSION } from "#lib/result-compression.ts";
import type { EngineServices } from "#engine/services.ts";
import type { Redactor } from "#engine/redaction/redact.ts";
import { readSmall } from "./small-bytes.ts";
import { encodeRecords, type RecordCounts } from "./spool.ts";

const COMMA = 0x2c;
const NEWLINE = 0x0a;

/**
 * Writes one result key: the JSON that `direct` returns, as a Brotli object, or uncompressed if it fits the row. Spec, Run results. In
 * an object the count comes last, because the records are compressed as they arrive and never held.
 */
export async function writeResult(
  services: Pick<EngineServices, "blobs">,
  run: { readonly accountId: string; readonly runId: string },
  key: string,
  batches: RecordBatches,
  redact: Redactor,
): Promise<NewResult> {
  const counts: RecordCounts = { total: 0, valid: 0 };
  const lines = await readSmall(encodeRecords(batches, redact.shown, counts));
  if (lines.content !== null) return inRow(key, lines.content, counts.total);
  let jsonBytes = 0;
  async function* json(stream: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of resultJson(stream, counts)) {
      jsonBytes += chunk.length;
      yield chunk;
    }
  }
  const blob = await services.blobs.put(
    `results/${run.accountId}/${run.runId}/${randomBase62(16)}.json.br`,
    compressed(json(lines.stream)),
  );
  return { key, totalRecords: counts.total, jsonBytes, content: null, blob };
}

/** The same for records in memory; null: they don't fit the row. */
export function smallResult(
  key: string,
  records: readonly DataRecord[],
  redact: Pick<Redactor, "shown">,
): NewResult | null {
  const lines = redact.shown.fewLines(records, limits.rowContentBytesMax);
  return lines && inRow(key, lines, records.length);
}

function inRow(key: string, lines: Buffer, totalRecords: number): NewResult {
  const records = listOf(lines).toString("utf8");
  const content = Buffer.from(`{"totalRecords":${totalRecords},"records":[${records}]}`, "utf8");
  return { key, totalRecords, jsonBytes: content.length, content, blob: null };
}

/** `lines` are complete lines from `encodeRecords`. */
async function* resultJson(lines: AsyncIterable<Uint8Array>, counts: RecordCounts): AsyncIterable<Buffer> {
  yield Buffer.from('{"records":[');
  let first = true;
  for await (const chunk of lines) {
    if (!first) yield Buffer.of(COMMA);
    yield listOf(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    first = false;
  }
  yield Buffer.from(`],"totalRecords":${counts.total}}`);
}

/** Turns lines of JSON into items of a list, in place. */
function listOf(lines: Buffer): Buffer {
  const list = lines.at(-1) === NEWLINE ? lines.subarray(0, -1) : lines;
  for (let at = list.indexOf(NEWLINE); at !== -1; at = list.indexOf(NEWLINE, at + 1)) list[at] = COMMA;
  return list;
}

/** Produces one chunk at a time, only as fast as they are compressed, so that none waits in memory. */
async function* compressed(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const compress = createBrotliCompress(RESULT_COMPRESSION);
  const write = promisify((chunk: Uint8Array, done: (error?: Error | null) => void) => {
    compress.write(chunk, done);
  });
  const feeding = (async () => {
    for await (const chunk of chunks) await write(chunk);
    compress.end();
  })().catch((error: unknown) => {
    compress.destroy(
      error instanceof Error ? error : new Error("the records can't be read", { cause: error }),
    );
  });
  yield* compress as AsyncIterable<Uint8Array>;
  await feeding;
}
