/**
 * The limits of the data bench, in a process of their own that has nothing else to do: the same bytes through `JSON.parse` and
 * Brotli, the mapping as a plain function, and the mapping by the service's own evaluator.
 */
import { once } from "node:events";
import { createBrotliCompress } from "node:zlib";
import { openEvaluator } from "#expressions/evaluator.ts";
import { RESULT_COMPRESSION } from "#lib/result-compression.ts";
import { documentOf, mapPlainly, MAPPINGS, type Mapping, type SourceRecord } from "./data-records.ts";

export type LimitAsked =
  | { readonly limit: "parse-and-compress"; readonly records: number }
  | { readonly limit: "plain"; readonly records: number }
  | { readonly limit: "expressions"; readonly records: number; readonly mapping: Mapping };

export interface LimitAnswer {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly bytes: number;
}

const BATCH = 500;

/** Lists of records with their bytes; a chunk of the document ends with a whole record, and a comma. */
function* batches(records: number): Generator<Buffer> {
  for (const chunk of documentOf("ndjson", records)) yield chunk;
}

const listOf = (lines: Buffer): SourceRecord[] =>
  JSON.parse(`[${lines.toString("utf8").trimEnd().replaceAll("\n", ",")}]`) as SourceRecord[];

/** Both at once: Brotli works in a thread of its own. */
async function parseAndCompress(records: number): Promise<number> {
  const compress = createBrotliCompress(RESULT_COMPRESSION);
  compress.resume();
  let bytes = 0;
  for (const chunk of batches(records)) {
    bytes += chunk.length;
    listOf(chunk);
    if (!compress.write(chunk)) await once(compress, "drain");
  }
  compress.end();
  await once(compress, "end");
  return bytes;
}

let sink: unknown;

/** Only the time of the function counts. */
function mapAll(records: number): number {
  let ms = 0;
  for (const chunk of batches(records)) {
    const list = listOf(chunk);
    const startedAt = performance.now();
    sink = list.map(mapPlainly);
    ms += performance.now() - startedAt;
  }
  return ms / 1_000;
}

/** Only the time of the evaluator counts: batch after batch, as a `map` node asks for them. */
async function evaluateAll(records: number, mapping: Mapping): Promise<number> {
  const evaluator = openEvaluator();
  const bound = evaluator.bind({});
  const sources = Object.values(MAPPINGS[mapping]);
  let ms = 0;
  let index = 0;
  for (const chunk of batches(records)) {
    const list = listOf(chunk);
    for (let start = 0; start < list.length; start += BATCH) {
      const rows = list.slice(start, start + BATCH).map((root) => ({
        root: root as never,
        variables: { index: index++, isValid: true, errors: [] },
      }));
      const startedAt = performance.now();
      sink = await bound.evaluateBatch(sources, rows);
      ms += performance.now() - startedAt;
    }
  }
  bound.release();
  await evaluator.close();
  return ms / 1_000;
}

process.on("message", (asked: LimitAsked) => {
  void (async () => {
    const cpu = process.cpuUsage();
    const startedAt = performance.now();
    let bytes = 0;
    let seconds: number | null = null;
    if (asked.limit === "parse-and-compress") bytes = await parseAndCompress(asked.records);
    else if (asked.limit === "plain") seconds = mapAll(asked.records);
    else seconds = await evaluateAll(asked.records, asked.mapping);
    const used = process.cpuUsage(cpu);
    process.send?.({
      seconds: seconds ?? (performance.now() - startedAt) / 1_000,
      cpuSeconds: (used.user + used.system) / 1e6,
      bytes,
    } satisfies LimitAnswer);
    void sink;
  })();
});
