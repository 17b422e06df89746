import { isJsonObject, type Json } from "#domain/json.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import { validRecord, type DataRecord, type RecordBatches } from "#domain/record.ts";
import { must } from "#lib/assert.ts";
import { flowFrom, type Flow, type KnownWrite, type NodeContext } from "#nodes/define-node.ts";
import { valueOf } from "#nodes/records/expression-value.ts";
import { describeRequest, type HttpConfig } from "./http-config.ts";
import type { RequestContext } from "./http-exchange.ts";
import { withJson } from "./http-json.ts";
import { extractFields, prepareNodeRequest } from "./http-submit.ts";
import { isThere } from "./http-verify.ts";
import { executeWrite, textOutcome, type Write } from "./http-writes.ts";
import type { Written } from "#nodes/settle-write.ts";
import { inLanes } from "#lib/lanes.ts";
import { inBatches, indexedBatches, recordScopes, recordsFromJson } from "#nodes/records/record-flow.ts";

/** One write of a node: for one record of `for_each`, or the node's only one. */
interface Item extends RequestContext {
  readonly ordinal: number;
  readonly record: DataRecord | null;
}

/** `for_each` of a node that writes (docs/nodes/http.md): the outputs of the writes, in the order of the records. */
export async function* recordsOfEachWrite(context: NodeContext, config: HttpConfig): RecordBatches {
  const source = must(config.for_each, "the node of for_each");
  for await (const { first, batch } of indexedBatches([flowFrom(context, source)])) {
    const items = recordScopes(batch, first).map((scope, index) =>
      itemOf(context, config, { ordinal: first + index, record: must(batch[index], "the record"), scope }),
    );
    const known = await context.writes.known(first, batch.length);
    const given = await sendWrites(
      context,
      items,
      config.concurrency ?? 1,
      async (item) => await writeItem(context, config, item, known.get(item.ordinal)),
    );
    yield* inBatches(given.flatMap((json, index) => recordsGiven(json, batch[index])));
  }
}

/** A node's only write: outputs its records, or the answer's text. */
export async function writeAlone(context: NodeContext, config: HttpConfig): Promise<Flow> {
  const item = itemOf(context, config, { ordinal: 0, record: null, scope: {} });
  const known = await context.writes.known(0, 1);
  const [json = null] = await sendWrites(
    context,
    [item],
    1,
    async () => await writeItem(context, config, item, known.get(0)),
  );
  if (!givesRecords(config)) {
    const text = isJsonObject(json) ? json["text"] : undefined;
    return { kind: "value", value: typeof text === "string" ? { form: "text", text } : { form: "absent" } };
  }
  const batches = async function* (): RecordBatches {
    yield* inBatches(recordsGiven(json, undefined));
  };
  return { kind: "records", batches: batches() };
}

function itemOf(
  context: NodeContext,
  config: HttpConfig,
  { ordinal, record, scope }: Omit<Item, "place" | "seen">,
): Item {
  return {
    ordinal,
    record,
    scope: { ...scope, variables: { ...scope.variables, token: context.writes.token(ordinal) } },
    seen: record === null ? {} : { record: record.data },
    place: `${describeRequest(config)}${record === null ? "" : `, record ${ordinal}`}`,
  };
}

/** In order, with a limited concurrency. After one fails or is uncertain, no other is started; those in progress are completed. */
async function sendWrites(
  context: NodeContext,
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Written>,
): Promise<readonly Json[]> {
  let doubtful = false;
  const given = await inLanes(
    items,
    atOnce,
    async (item): Promise<Json> => {
      const written = await work(item);
      if (written !== "in_doubt") return written.gave;
      doubtful = true;
      return null;
    },
    () => doubtful,
  );
  if (doubtful) context.writes.askOperator();
  return given;
}

async function writeItem(
  context: NodeContext,
  config: HttpConfig,
  item: Item,
  known: KnownWrite | undefined,
): Promise<Written> {
  const { verify } = config;
  const write: Write = {
    ordinal: item.ordinal,
    prepare: async () => await prepareNodeRequest(context, config, item),
    subject: item,
    read: async (response) => await readAnswer(context, config, item, response),
    whenFound: foundOutcome(config, item),
    lookUp: verify === undefined ? null : async () => await isThere(context, verify, item),
  };
  return await executeWrite(context, config, write, known);
}

/** The output of an answer: `records` evaluated on its JSON, or the record itself with `status`, or its text. */
async function readAnswer(
  context: NodeContext,
  config: HttpConfig,
  item: Item,
  response: OutboundResponse,
): Promise<Json> {
  const source = config.records ?? config.parse?.records;
  const { place, record, seen } = item;
  context.log("response", { status: response.status, bytes: response.body.byteLength });
  if (config.extract !== undefined) {
    const extracted = await extractFields(context, config.extract, response, item);
    return record === null ? extracted : { ...record.data, status: response.status, ...extracted };
  }
  if (config.records === undefined && config.parse === undefined) {
    return record === null ? textOutcome(response, place) : { ...record.data, status: response.status };
  }
  if (response.status === 204) return [];
  return await withJson(
    context,
    response,
    place,
    async (root) => {
      if (source === undefined && root.root !== undefined) return root.root;
      const scope = { ...root, variables: seen };
      const [outcomes] = await context.expressions.evaluateBatch([source ?? "$"], [scope]);
      return valueOf(outcomes?.[0], `${place}: records`) ?? null;
    },
    config.parse?.charset,
  );
}

/** The output if the answer was lost: the record unchanged, with a `status` that says how the outcome is known. */
function foundOutcome(config: HttpConfig, { record }: Item): Json {
  if (record === null) return givesRecords(config) ? [] : { text: "" };
  return { ...record.data, status: "found" };
}

/** Whether the answer of a node without `for_each` is read as records. */
const givesRecords = ({ records, parse, extract }: HttpConfig): boolean =>
  [records, parse, extract].some((key) => key !== undefined);

/** A record's `errors` and `isValid` are copied to all records that are derived from it. */
function recordsGiven(json: Json | undefined, record: DataRecord | undefined): readonly DataRecord[] {
  return recordsFromJson(json, "the response").map((given) =>
    record === undefined ? validRecord(given.data) : { ...record, data: given.data },
  );
}
