import type { RecordBatches } from "#domain/record.ts";
import type { Value } from "#domain/value.ts";
import { assert } from "#lib/assert.ts";
import { charsetOf } from "#nodes/parse/decode-text.ts";
import { defineNode, type NodeContext } from "#nodes/define-node.ts";
import { reportMissing } from "#nodes/parse/missing-records.ts";
import { isUnpacked, parseFindings, parseSchema, type ParseConfig } from "#nodes/parse/parse-config.ts";
import { parseRecords, type ParseSource } from "#nodes/parse/parse-records.ts";
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
});

async function* parsed(context: NodeContext, config: ParseConfig): RecordBatches {
  const { expressions, signal } = context;
  for (const flow of context.from) {
    assert(flow.kind === "value", "a parse node takes values");
    const source = sourceOf(flow.value);
    const place = flow.value.form === "file" ? "The file" : "The value";
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
