import type { Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import type { Value } from "#domain/value.ts";
import { assert } from "#lib/assert.ts";
import { charsetOf } from "#nodes/parse/decode-text.ts";
import { defineNode, type NodeContext } from "#nodes/define-node.ts";
import { reportMissing } from "#nodes/parse/missing-records.ts";
import { isUnpacked, parseFindings, parseSchema, type ParseConfig } from "#nodes/parse/parse-config.ts";
import { parseRecords, readTextRoot, type ParseSource } from "#nodes/parse/parse-records.ts";
import { recordsFromJson } from "#nodes/records/record-flow.ts";
import type { WholeFlow } from "#nodes/at-once.ts";
import { readConfig } from "#domain/read-config.ts";

/** docs/nodes/parse.md. */
export const node = defineNode({
  type: "parse",
  description: "Parses text, a file, or an input's JSON value into records.",
  schema: parseSchema,
  takes: "value",
  usesCredential: false,
  gives: () => "records",
  effect: () => "none",
  unpacks: isUnpacked,
  check: (config) => parseFindings(readConfig(parseSchema, config)),
  run: (context, config) =>
    Promise.resolve({ kind: "records", batches: parsed(context, readConfig(parseSchema, config)) }),
  runAtOnce: ({ from }, raw) => {
    const { format, records } = readConfig(parseSchema, raw);
    return format === "json" && records === undefined ? parsedAtOnce(from) : null;
  },
});

/** Whole JSON texts and values, if they are small. */
function parsedAtOnce(from: readonly WholeFlow[]): WholeFlow | null {
  const records: DataRecord[] = [];
  for (const flow of from) {
    assert(flow.kind === "value", "a parse node takes values");
    const { value } = flow;
    if (value.form === "absent") continue;
    if (value.form === "file") return null;
    const root = value.form === "json" ? { root: value.json } : readTextRoot(value.text, PLACE);
    if (root.root === undefined || lengthOf(root.root) > limits.recordBatchSizeMax - records.length)
      return null;
    records.push(...recordsFromJson(root.root, PLACE));
  }
  return { kind: "records", records };
}

const PLACE = "The value";
const lengthOf = (json: Json): number => (Array.isArray(json) ? json.length : 1);

async function* parsed(context: NodeContext, config: ParseConfig): RecordBatches {
  const { expressions, signal } = context;
  for (const flow of context.from) {
    assert(flow.kind === "value", "a parse node takes values");
    const source = sourceOf(flow.value);
    const place = flow.value.form === "file" ? "The file" : PLACE;
    if (source !== null)
      yield* parseRecords(source, config, {
        expressions,
        signal,
        place,
        missing: reportMissing(context, {}, place),
      });
  }
}

function sourceOf(value: Value): ParseSource | null {
  if (value.form === "absent") return null;
  return value.form === "file"
    ? { form: "bytes", open: value.open, charset: charsetOf(value.contentType) }
    : value;
}
