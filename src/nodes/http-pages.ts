import { setImmediate } from "node:timers/promises";
import { NoJson } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import { takeJsonRoom } from "#domain/json-room.ts";
import { limits } from "#domain/limits.ts";
import { readRoot } from "#domain/read-json.ts";
import type { RecordBatches } from "#domain/record.ts";
import { must } from "#lib/assert.ts";
import { charsetOf } from "./decode-text.ts";
import { NodeFailure, type NodeContext } from "./define-node.ts";
import { kindOf, valueOf } from "./expression-value.ts";
import type { HttpConfig, Paginate } from "./http-config.ts";
import { exchange, mediaType, responseText } from "./http-exchange.ts";
import type { Pairs, PreparedRequest } from "./http-request.ts";
import { nextLink } from "./link-header.ts";
import { lookAtMissing, tellMissing, type TellMissing } from "./missing-records.ts";
import { requireRecords } from "./require-records.ts";
import { PageRepeats, type PageLead } from "./page-repeats.ts";
import { listPath, parseRecords, type ParseConfig, type ParseSource } from "./parse-records.ts";
import { batchesFromJson } from "./record-flow.ts";

const SLICE_BYTES = 65_536;

/** Where a page is: the pairs go over the query of the node, or, with a url of its own, stand instead of it. */
interface PageAt {
  readonly url: string | null;
  readonly pairs: Pairs;
  /** The page number or the offset; 0 where there is none. */
  readonly position: number;
}

interface Page {
  readonly batches: RecordBatches;
  readonly cursor: Json | undefined;
  /** To be called when the records are read. */
  readonly release: () => void;
}

/** The records of every page, page by page. Throws NodeFailure when there is more to come after `max_pages`. */
export async function* recordsOfPages(
  context: NodeContext,
  config: HttpConfig,
  request: PreparedRequest,
): RecordBatches {
  const { paginate } = config;
  const pagesMax = paginate?.max_pages ?? limits.pagesMax;
  const repeats = paginate === undefined ? null : new PageRepeats();
  let at = firstPage(paginate);
  let total = 0;
  for (let number = 1; ; number += 1) {
    const place = `${request.method} ${config.request.url}${paginate === undefined ? "" : `, page ${number}`}`;
    const response = await exchange(context, config, pageRequest(request, at), place);
    // Later pages may be without: most kinds end with one that is.
    const missing = number === 1 ? tellMissing(context, config, place) : undefined;
    const page = await readPage(context, config, response, { place, missing });
    let records = 0;
    try {
      for await (const batch of page.batches) {
        records += batch.length;
        repeats?.add(batch);
        yield batch;
      }
    } finally {
      page.release();
    }
    context.log("page", { page: number, status: response.status, records });
    total += records;
    const next =
      paginate === undefined
        ? null
        : nextPage(paginate, at, { response, records, cursor: page.cursor, place });
    if (next === null) return requireRecords(config, total);
    repeats?.endPage(number, leadTo(next, paginate), place);
    if (number === pagesMax)
      throw new NodeFailure(`There are more pages than max_pages (${pagesMax}) allows.`);
    at = next;
  }
}

function leadTo({ url, pairs: [pair] }: PageAt, paginate: Paginate | undefined): PageLead {
  if (url !== null) return { kind: "address", url };
  const [param, value] = must(pair, "the pair that asks for the page");
  return paginate?.cursor === undefined ? { kind: "number", param } : { kind: "cursor", param, value };
}

function pageRequest(request: PreparedRequest, at: PageAt): PreparedRequest {
  if (at.url !== null) return { ...request, url: at.url, query: [] };
  const own = new Set(at.pairs.map(([name]) => name));
  return { ...request, query: [...request.query.filter(([name]) => !own.has(name)), ...at.pairs] };
}

function firstPage(paginate: Paginate | undefined): PageAt {
  const position = paginate?.page ?? paginate?.offset;
  if (paginate === undefined || position === undefined) return { url: null, pairs: [], position: 0 };
  return numberedPage(paginate, position);
}

function numberedPage(paginate: Paginate, position: number): PageAt {
  const { size, size_param: sizeParam } = paginate;
  const sizePairs: Pairs = size !== undefined && sizeParam !== undefined ? [[sizeParam, String(size)]] : [];
  return { url: null, pairs: [[must(paginate.param, "param"), String(position)], ...sizePairs], position };
}

interface PageRead {
  readonly response: OutboundResponse;
  readonly records: number;
  readonly cursor: Json | undefined;
  readonly place: string;
}

/** Whether more pages follow (docs/nodes/http.md). Null = this was the last one. */
function nextPage(paginate: Paginate, at: PageAt, read: PageRead): PageAt | null {
  if (paginate.cursor !== undefined) {
    const { cursor } = read;
    if (cursor === undefined || cursor === null || cursor === false || cursor === "") return null;
    if (typeof cursor !== "string" && typeof cursor !== "number") {
      throw new NodeFailure(
        `${read.place}: paginate.cursor gives ${kindOf(cursor)}; it must give a text, a number, or nothing at the end.`,
      );
    }
    return { url: null, pairs: [[must(paginate.param, "param"), String(cursor)]], position: 0 };
  }
  if (paginate.link_header !== undefined) return linkedPage(read);
  if (read.records === 0) return null;
  if (paginate.page !== undefined) return numberedPage(paginate, at.position + 1);
  return paginate.size !== undefined && read.records < paginate.size
    ? null
    : numberedPage(paginate, at.position + read.records);
}

/** The gate refuses a link that leads out of the node's hosts. */
function linkedPage({ response, place }: PageRead): PageAt | null {
  const link = nextLink(response.headers.get("link") ?? "");
  if (link === null) return null;
  const url = URL.parse(link, response.url);
  if (url === null) throw new NodeFailure(`${place}: the Link header's rel=next is not a url.`);
  return { url: url.href, pairs: [], position: 0 };
}

/** What begins the messages about a page, and is told when it has no records where there could be some. */
interface PagePlace {
  readonly place: string;
  readonly missing: TellMissing | undefined;
}

async function readPage(
  context: NodeContext,
  config: HttpConfig,
  response: OutboundResponse,
  at: PagePlace,
): Promise<Page> {
  const { parse } = config;
  const { place } = at;
  if (response.kept !== null || isListRead(config, response))
    return { batches: listRecords(context, config, response, at), cursor: undefined, release: NOTHING };
  if (parse !== undefined && parse.format !== "json") {
    const charset = charsetOf(response.headers.get("content-type"));
    const { expressions, signal } = context;
    const open = async function* () {
      yield response.body;
    };
    return {
      batches: parseRecords({ form: "bytes", open, charset }, parse, { ...at, expressions, signal }),
      cursor: undefined,
      release: NOTHING,
    };
  }
  // RFC 9110, 15.3.5: 204 has no content, so no records either.
  if (response.status === 204)
    return { batches: batched(batchesFromJson(null, place)), cursor: undefined, release: NOTHING };
  const release = await takeJsonRoom(response.body, context.signal);
  try {
    return { ...(await readWhole(context, config, response, at)), release };
  } catch (error) {
    release();
    throw error;
  }
}

const NOTHING = (): void => {};

/** A page that is parsed whole. */
async function readWhole(
  context: NodeContext,
  { records: own, parse, paginate }: HttpConfig,
  response: OutboundResponse,
  { place, missing }: PagePlace,
): Promise<Omit<Page, "release">> {
  const fail = (problem: string): NodeFailure =>
    new NodeFailure(
      `${place}: the response (${mediaType(response.headers.get("content-type"))}) ${problem}.`,
    );
  const body = readRoot(responseText(response, place));
  if (!body.ok) throw fail(body.problem);
  const records = own ?? parse?.records ?? "$";
  const sources = [records, paginate?.cursor].filter((source) => source !== undefined);
  // One hop for both: the body is the large part of it.
  const [outcomes] = await context.expressions.evaluateBatch(sources, [body.root]).catch((error: unknown) => {
    throw error instanceof NoJson ? fail(error.message) : error;
  });
  const value = valueOf(outcomes?.[0], `${place}: records`);
  const path = listPath(records);
  if ((value === undefined || value === null) && path !== null && missing !== undefined)
    await lookAtMissing(context.expressions, body.root, path, missing);
  const cursor =
    paginate?.cursor === undefined ? undefined : valueOf(outcomes?.at(-1), `${place}: paginate.cursor`);
  return {
    batches: batched(
      batchesFromJson(
        value,
        `${place}: ${own === undefined && parse?.records === undefined ? "the response" : "records"}`,
      ),
    ),
    cursor,
  };
}

/** JSON whose list needs no expression is read item by item, as a file is. */
function isListRead({ parse, paginate, records }: HttpConfig, { status }: OutboundResponse): boolean {
  const isJson = parse === undefined || parse.format === "json";
  return (
    status !== 204 && isJson && paginate?.cursor === undefined && listPath(records ?? parse?.records) !== null
  );
}

function listRecords(
  { expressions, signal }: NodeContext,
  { parse, records }: HttpConfig,
  response: OutboundResponse,
  { place, missing }: PagePlace,
): RecordBatches {
  const contentType = response.headers.get("content-type");
  const { body } = response;
  const open = response.kept?.open ?? (() => slicesOf(body));
  const config: ParseConfig = { ...(parse ?? { format: "json" }), ...(records !== undefined && { records }) };
  const source: ParseSource = { form: "bytes", open, charset: charsetOf(contentType) };
  const named = config.format === "json" ? `${place}: the response (${mediaType(contentType)})` : place;
  const recordsPlace = `${place}: ${config.records === undefined ? "the response" : "records"}`;
  return parseRecords(source, config, { expressions, signal, place: named, recordsPlace, missing });
}

/** With a turn of the event loop between them. */
async function* slicesOf(body: Uint8Array): AsyncIterable<Uint8Array> {
  for (let start = 0; start < body.length; start += SLICE_BYTES) {
    yield body.subarray(start, start + SLICE_BYTES);
    await setImmediate();
  }
}

async function* batched(records: ReturnType<typeof batchesFromJson>): RecordBatches {
  yield* records;
}
