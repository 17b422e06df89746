import { isJsonObject } from "#domain/json.ts";
import type { RecordBatches } from "#domain/record.ts";
import { defineNode, type NodeContext } from "./define-node.ts";
import { httpFindings, httpWarnings } from "./http-check.ts";
import { addedVariables, effectOf, httpSchema, requestScopeOf, type HttpConfig } from "./http-config.ts";
import { recordsOfEachRead } from "./http-each-reads.ts";
import { recordsOfEachWrite, writeAlone } from "./http-each-writes.ts";
import { exchange, responseText } from "./http-exchange.ts";
import { recordsOfPages } from "./http-pages.ts";
import { fileOfResponse } from "./http-file.ts";
import { prepareRequest } from "./http-request.ts";
import { isPacked } from "./parse-records.ts";
import { requireRecords } from "./require-records.ts";
import { readConfig } from "#domain/read-config.ts";

/** docs/nodes/http.md. The node's `timeout` is that of one request. */
export const node = defineNode({
  type: "http",
  description:
    "Sends a request, one per page, or one per record, and gives the records of the answers, or the answer as a text or a file.",
  schema: httpSchema,
  takes: "none",
  usesCredential: true,
  timesRequests: true,
  gives: (config) =>
    config["for_each"] === undefined && config["records"] === undefined && config["parse"] === undefined
      ? "value"
      : "records",
  requestScope: requestScopeOf,
  addsVariables: addedVariables,
  effect: (config) => effectOf(readConfig(httpSchema, config)),
  unpacks: ({ parse }) => isJsonObject(parse) && isPacked(parse["format"]),
  check: httpFindings,
  warn: httpWarnings,
  run: async (context, raw) => {
    const config = readConfig(httpSchema, raw);
    const isWrite = effectOf(config) === "write";
    if (config.for_each !== undefined) {
      const batches = isWrite ? recordsOfEachWrite(context, config) : recordsOfEachRead(context, config);
      return { kind: "records", batches };
    }
    if (isWrite) return await writeAlone(context, config);
    const place = `${config.request.method ?? "GET"} ${config.request.url}`;
    if (config.records !== undefined || config.parse !== undefined)
      return { kind: "records", batches: recordsOfOne(context, config, place) };
    const request = await prepareRequest(context, config.request);
    const response = await exchange(context, config, request, { place, seen: {} });
    context.log("response", {
      status: response.status,
      bytes: response.kept?.sizeBytes ?? response.body.byteLength,
    });
    if (config.save !== undefined) return { kind: "value", value: fileOfResponse(response) };
    return { kind: "value", value: { form: "text", text: responseText(response, place) } };
  },
});

async function* recordsOfOne(context: NodeContext, config: HttpConfig, place: string): RecordBatches {
  let total = 0;
  for await (const batch of recordsOfPages(context, config, { scope: {}, seen: {}, place })) {
    total += batch.length;
    yield batch;
  }
  requireRecords(config, total);
}
