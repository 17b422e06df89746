import type { JsonObject } from "#domain/json.ts";
import { readConfig } from "#domain/read-config.ts";
import { validRecord, type RecordBatches } from "#domain/record.ts";
import { browserFindings, browserSchema, givesFile, isWrite } from "#nodes/browser/browser-config.ts";
import { readPages } from "#nodes/browser/browser-reads.ts";
import { writeByPages } from "#nodes/browser/browser-writes.ts";
import { defineNode } from "#nodes/define-node.ts";
import { inBatches } from "#nodes/records/record-flow.ts";

/** docs/nodes/browser.md. */
export const node = defineNode({
  type: "browser",
  description:
    "Reads a target's pages in a browser, or writes by them, by steps, for targets without a usable HTTP interface.",
  schema: browserSchema,
  takes: "none",
  usesCredential: true,
  gives: (config) => (givesFile(config) ? "value" : "records"),
  effect: (config) => (isWrite(config) ? "write" : "read"),
  // The page's texts have not passed the door that answers of `http` nodes pass.
  unpacks: () => true,
  check: browserFindings,
  run: async (context, raw) => {
    const config = readConfig(browserSchema, raw);
    const { records, file } = isWrite(config)
      ? { records: await writeByPages(context, config), file: null }
      : await readPages(context, config);
    if (file !== null) {
      context.log("downloaded", { bytes: file.sizeBytes });
      return { kind: "value", value: file };
    }
    context.log("read", { records: records.length });
    return { kind: "records", batches: batchesOf(records) };
  },
});

async function* batchesOf(records: readonly JsonObject[]): RecordBatches {
  for (const batch of inBatches(records)) yield batch.map(validRecord);
}
