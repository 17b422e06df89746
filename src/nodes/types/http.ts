import { isJsonObject } from "#domain/json.ts";
import { batchOf, validRecord } from "#domain/record.ts";
import { defineNode } from "#nodes/define-node.ts";
import { httpFindings, httpWarnings } from "#nodes/http/http-check.ts";
import {
  addedVariables,
  describeRequest,
  effectOf,
  httpSchema,
  requestScopeOf,
} from "#nodes/http/http-config.ts";
import { recordsOfEachRead } from "#nodes/http/http-each-reads.ts";
import { recordsOfEachWrite, writeAlone } from "#nodes/http/http-each-writes.ts";
import { responseText, type RequestContext } from "#nodes/http/http-exchange.ts";
import { recordsOfRequest } from "#nodes/http/http-pages.ts";
import { fileOfResponse } from "#nodes/http/http-file.ts";
import { extractFields, prepareNodeRequest } from "#nodes/http/http-submit.ts";
import { exchangeUntil } from "#nodes/http/http-until.ts";
import { isUnpacked } from "#nodes/parse/parse-config.ts";
import { readConfig } from "#domain/read-config.ts";

/** docs/nodes/http.md. The node's `timeout` applies to each request. */
export const node = defineNode({
  type: "http",
  description:
    "Sends a request, or one for each page or record, and outputs the records of the answers, or the answer as text or a file.",
  schema: httpSchema,
  takes: "none",
  usesCredential: true,
  timesRequests: true,
  gives: (config) =>
    ["for_each", "records", "parse", "extract"].some((key) => config[key] !== undefined)
      ? "records"
      : "value",
  requestScope: requestScopeOf,
  addsVariables: addedVariables,
  effect: (config) => effectOf(readConfig(httpSchema, config)),
  unpacks: ({ parse }) => isJsonObject(parse) && isUnpacked(parse),
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
    const asked: RequestContext = { scope: {}, seen: {}, place: describeRequest(config) };
    const { place } = asked;
    if (config.records !== undefined || config.parse !== undefined)
      return await recordsOfRequest(context, config, asked);
    const request = await prepareNodeRequest(context, config, asked);
    const response = await exchangeUntil(context, config, request, asked);
    context.log("response", {
      status: response.status,
      bytes: response.kept?.sizeBytes ?? response.body.byteLength,
    });
    if (config.extract !== undefined) {
      const data = await extractFields(context, config.extract, response, asked);
      const whole = [validRecord(data)];
      return { kind: "records", batches: batchOf(whole), whole };
    }
    if (config.save !== undefined) return { kind: "value", value: fileOfResponse(response) };
    return { kind: "value", value: { form: "text", text: responseText(response, place) } };
  },
});
