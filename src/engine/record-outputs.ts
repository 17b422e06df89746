import { createBrotliCompress } from "node:zlib";
import { Readable } from "node:stream";
import type { NewResult } from "#db/run-results.ts";
import type { RecordBatches } from "#domain/record.ts";
import { listsOfLines } from "#domain/record-lines.ts";
import { randomBase62 } from "#lib/new-id.ts";
import { RESULT_COMPRESSION } from "#lib/result-compression.ts";
import type { EngineServices } from "./services.ts";
import type { Redactor } from "./redact.ts";
import { readSmall, streamOf } from "./small-bytes.ts";
import { encodeRecords, type RecordCounts, type Scratch } from "./spool.ts";

const LIST_BYTES = 1_048_576;
const COMMA = Buffer.from(",");

/**
 * Writes one result key: the JSON that `direct` shows (`{"totalRecords":n,"records":[…]}`), as a Brotli object, or as it is when
 * it fits the row. Spec, Run results. The count stands first, so the records are spooled once before they are compressed.
 */
export async function writeResult(
  services: Pick<EngineServices, "blobs">,
  run: { readonly accountId: string; readonly runId: string },
  key: string,
  batches: RecordBatches,
  scratch: Scratch,
  redact: Redactor,
): Promise<NewResult> {
  const counts: RecordCounts = { total: 0, valid: 0 };
  const lines = await readSmall(encodeRecords(batches, redact, counts));
  if (lines.content !== null) {
    const chunks: Buffer[] = [];
    for await (const chunk of resultJson(counts.total, streamOf(lines.content))) chunks.push(chunk);
    const content = Buffer.concat(chunks);
    return { key, totalRecords: counts.total, jsonBytes: content.length, content, blob: null };
  }
  const spooled = await scratch.keep(lines.stream);
  let jsonBytes = 0;
  async function* json(): AsyncIterable<Uint8Array> {
    for await (const chunk of resultJson(counts.total, spooled())) {
      jsonBytes += chunk.length;
      yield chunk;
    }
  }
  const compress = createBrotliCompress(RESULT_COMPRESSION);
  const compressed = Readable.from(json()).compose(compress) as AsyncIterable<Uint8Array>;
  const blob = await services.blobs.put(
    `results/${run.accountId}/${run.runId}/${randomBase62(16)}.json.br`,
    compressed,
  );
  return { key, totalRecords: counts.total, jsonBytes, content: null, blob };
}

async function* resultJson(total: number, spooled: AsyncIterable<Uint8Array>): AsyncIterable<Buffer> {
  yield Buffer.from(`{"totalRecords":${total},"records":[`);
  let first = true;
  for await (const list of listsOfLines(spooled, LIST_BYTES)) {
    if (!first) yield COMMA;
    yield list;
    first = false;
  }
  yield Buffer.from("]}");
}
