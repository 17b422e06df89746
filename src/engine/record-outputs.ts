import { createBrotliCompress, constants } from "node:zlib";
import { Readable } from "node:stream";
import type { NewResult } from "#db/run-results.ts";
import type { RecordBatches } from "#domain/record.ts";
import { splitLines } from "#domain/record-lines.ts";
import { randomBase62 } from "#lib/new-id.ts";
import type { EngineServices } from "./services.ts";
import type { Redactor } from "./redact.ts";
import { encodeRecords, type RecordCounts, type Scratch } from "./spool.ts";

/** Design, page 7, 1.10: quality 5 keeps up with the disk; Node's default (11) takes a minute for 50 MB. */
const BROTLI_QUALITY = 5;

/**
 * Writes one result key: the JSON that `direct` shows (`{"totalRecords":n,"records":[…]}`), as a Brotli object. Spec, Run
 * results. The count stands first, so the records are spooled once before they are compressed.
 */
export async function writeResult(
  services: EngineServices,
  run: { readonly accountId: string; readonly runId: string },
  key: string,
  batches: RecordBatches,
  scratch: Scratch,
  redact: Redactor,
): Promise<NewResult> {
  const counts: RecordCounts = { total: 0, valid: 0 };
  const spooled = await scratch.keep(encodeRecords(batches, redact, counts));
  let jsonBytes = 0;
  async function* json(): AsyncIterable<Uint8Array> {
    for await (const chunk of resultJson(counts.total, spooled())) {
      jsonBytes += chunk.length;
      yield chunk;
    }
  }
  const compress = createBrotliCompress({
    params: {
      [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    },
  });
  const compressed = Readable.from(json()).compose(compress) as AsyncIterable<Uint8Array>;
  const blob = await services.blobs.put(
    `results/${run.accountId}/${run.runId}/${randomBase62(16)}.json.br`,
    compressed,
  );
  return {
    key,
    totalRecords: counts.total,
    jsonBytes,
    blobKey: blob.key,
    blobBytes: blob.sizeBytes,
    blobSha256: blob.sha256,
  };
}

async function* resultJson(total: number, spooled: AsyncIterable<Uint8Array>): AsyncIterable<Buffer> {
  yield Buffer.from(`{"totalRecords":${total},"records":[`);
  let first = true;
  for await (const lines of splitLines(spooled)) {
    const text = lines.map((line) => line.toString("utf8")).join(",");
    yield Buffer.from(first ? text : `,${text}`);
    first = false;
  }
  yield Buffer.from("]}");
}
