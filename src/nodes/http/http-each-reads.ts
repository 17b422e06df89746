import type { Scope } from "#domain/expression.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { must } from "#lib/assert.ts";
import { flowFrom, type NodeContext } from "#nodes/define-node.ts";
import { describeRequest, type HttpConfig } from "./http-config.ts";
import { exchange, type RequestContext } from "./http-exchange.ts";
import { fileOfResponse } from "./http-file.ts";
import { recordsOfPages } from "./http-pages.ts";
import { extractFields, prepareNodeRequest } from "./http-submit.ts";
import { mergeSmallBatches, inOrder } from "#nodes/records/in-order.ts";
import { indexedBatches, recordScopes } from "#nodes/records/record-flow.ts";
import { withFile } from "#nodes/records/record-file.ts";
import { requireRecords } from "./require-records.ts";

/** One record of `for_each`, and the request that is made for it. */
interface Item extends RequestContext {
  readonly record: DataRecord;
}

/** `for_each` of a node that reads (docs/nodes/http.md): the pages of each record, in the order of the records. */
export async function* recordsOfEachRead(context: NodeContext, config: HttpConfig): RecordBatches {
  const atOnce = config.concurrency ?? 1;
  const all = inOrder(context, itemsOf(context, config), atOnce, (inner, item) =>
    recordsOfItem(inner, config, item),
  );
  let total = 0;
  for await (const batch of mergeSmallBatches(all)) {
    total += batch.length;
    yield batch;
  }
  requireRecords(config, total);
}

async function* itemsOf(context: NodeContext, config: HttpConfig): AsyncGenerator<Item> {
  const source = flowFrom(context, must(config.for_each, "the node of for_each"));
  for await (const { first, batch } of indexedBatches([source])) {
    const scopes: readonly Scope[] = recordScopes(batch, first);
    for (const [index, record] of batch.entries())
      yield {
        record,
        scope: must(scopes[index], "the scope of the record"),
        seen: { record: record.data },
        place: `${describeRequest(config)}, record ${first + index}`,
      };
  }
}

/** A record's `errors` and `isValid` are copied to all records that are derived from it. */
async function* recordsOfItem(context: NodeContext, config: HttpConfig, item: Item): RecordBatches {
  const { record } = item;
  if (config.records !== undefined || config.parse !== undefined) {
    for await (const batch of recordsOfPages(context, config, item))
      yield batch.map(({ data }) => ({ ...record, data }));
    return;
  }
  const request = await prepareNodeRequest(context, config, item);
  const response = await exchange(context, config, request, item);
  const { status, body } = response;
  context.log("response", { status, bytes: body.byteLength });
  const extracted = config.extract && (await extractFields(context, config.extract, response, item));
  const data = { ...record.data, status, ...extracted };
  yield [
    {
      ...record,
      data: config.save === undefined ? data : withFile(data, fileOfResponse(response), body, item.place),
    },
  ];
}
