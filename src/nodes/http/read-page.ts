import { isUtf8 } from "node:buffer";
import { setImmediate } from "node:timers/promises";
import { readPage as askPage } from "#answers/page-reader.ts";
import { NotJson } from "#domain/expression.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { JsonObject } from "#domain/json.ts";
import { reserveJsonMemory } from "#domain/json-room.ts";
import { readRoot } from "#domain/read-json.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { charsetOf, decodeHtml } from "#nodes/parse/decode-text.ts";
import { NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import { valueOf } from "#nodes/records/expression-value.ts";
import { isAsked, type HttpConfig } from "./http-config.ts";
import { mediaType, responseText } from "./http-exchange.ts";
import { findMissing, type ReportMissing } from "#nodes/parse/missing-records.ts";
import { readWhile, type PageInfo } from "./next-page.ts";
import type { ParseConfig } from "#nodes/parse/parse-config.ts";
import {
  listPath,
  parseRecords,
  recordsOfWhole,
  type ParseSource,
  type ParseTools,
} from "#nodes/parse/parse-records.ts";
import { readColumn } from "#nodes/parse/read-parsed.ts";
import { batchesFromJson } from "#nodes/records/record-flow.ts";

const SLICE_BYTES = 65_536;

export interface Page extends PageInfo {
  /** A list if they were few enough to be read at once. */
  readonly batches: RecordBatches | Iterable<readonly DataRecord[]>;
  /** Must be called when the records have been read. */
  readonly release: () => void;
}

export interface PagePlace {
  /** The beginning of messages about the page. */
  readonly place: string;
  /** Variables of expressions over its body, in addition to the run's. */
  readonly variables: JsonObject;
  /** Called if records are missing. */
  readonly missing: ReportMissing | undefined;
}

const NOTHING = (): void => {};
const NO_PAGE_INFO: PageInfo & Pick<Page, "release"> = { lead: undefined, isMore: null, release: NOTHING };

/** The records of one answer, and its information about the next page. */
export async function readPage(
  context: NodeContext,
  config: HttpConfig,
  response: OutboundResponse,
  at: PagePlace,
): Promise<Page> {
  const { parse, paginate } = config;
  // RFC 9110, 15.3.5: 204 has no content, so no records either, and no further pages.
  if (response.status === 204)
    return {
      ...NO_PAGE_INFO,
      isMore: paginate?.while === undefined ? null : false,
      batches: [],
    };
  if (response.kept !== null || isListRead(config, response))
    return { ...NO_PAGE_INFO, batches: await listRecords(context, config, response, at) };
  if (parse !== undefined && parse.format !== "json") {
    const charset = charsetOf(response.headers.get("content-type"));
    const { expressions, signal } = context;
    const open = async function* () {
      yield response.body;
    };
    const lead =
      paginate?.next_css === undefined ? undefined : await findLink(context, paginate.next_css, response, at);
    const source: ParseSource = { form: "bytes", open, charset };
    return {
      ...NO_PAGE_INFO,
      lead,
      batches: parseRecords(source, parse, { ...at, expressions, signal }),
    };
  }
  const release = await reserveJsonMemory(response.body, context.signal);
  try {
    return { ...(await readWhole(context, config, response, at)), release };
  } catch (error) {
    release();
    throw error;
  }
}

/** Reads a page that is parsed as a whole. */
async function readWhole(
  context: NodeContext,
  { records: own, parse, paginate }: HttpConfig,
  response: OutboundResponse,
  { place, variables, missing }: PagePlace,
): Promise<Omit<Page, "release">> {
  const fail = (problem: string): NodeFailure =>
    new NodeFailure(
      `${place}: the response (${mediaType(response.headers.get("content-type"))}) ${problem}.`,
    );
  const body = readRoot(responseText(response, place, parse?.charset));
  if (!body.ok) throw fail(body.problem);
  const records = own ?? parse?.records ?? "$";
  const lead = paginate?.cursor ?? paginate?.next_url;
  const more = paginate?.while;
  const sources = [records, lead ?? "null", more ?? "null"];
  // One call for all expressions, because the body is the large part of it.
  const scope = { ...body.root, variables };
  const [outcomes] = await context.expressions.evaluateBatch(sources, [scope]).catch((error: unknown) => {
    throw error instanceof NotJson ? fail(error.message) : error;
  });
  const value = valueOf(outcomes?.[0], `${place}: records`);
  const path = listPath(records);
  if ((value === undefined || value === null) && path !== null && missing !== undefined)
    await findMissing(context.expressions, body.root, path, missing);
  const key = paginate?.cursor === undefined ? "next_url" : "cursor";
  const recordsPlace = `${place}: ${own === undefined && parse?.records === undefined ? "the response" : "records"}`;
  return {
    batches: batchesFromJson(value, recordsPlace),
    lead: lead === undefined ? undefined : valueOf(outcomes?.[1], `${place}: paginate.${key}`),
    isMore: more === undefined ? null : readWhile(valueOf(outcomes?.[2], `${place}: paginate.while`), place),
  };
}

/** The address in a link of an HTML page, from the address that its `<base>` names; null: there is no such link. */
async function findLink(
  { signal }: NodeContext,
  link: string,
  response: OutboundResponse,
  { place }: PagePlace,
): Promise<string | null> {
  const { css, attribute } = readColumn("next_css", link, "html");
  const text = decodeHtml(response.body, charsetOf(response.headers.get("content-type")), place);
  const found = await askPage(
    text,
    [
      { kind: "css", css: css ?? "*", attr: attribute ?? "href" },
      { kind: "css", css: "base[href]", attr: "href" },
    ],
    signal,
  );
  if (found === null)
    throw new NodeFailure(`${place}: the HTML could not be read within the limits of time and memory.`);
  const [href = null, base = null] = found;
  if (href === null || base === null) return href;
  const from = URL.parse(base, response.url);
  return from === null ? href : (URL.parse(href.trim(), from.href)?.href ?? href);
}

/** JSON whose list needs no expression is read item by item, like a file. */
function isListRead({ parse, paginate, records }: HttpConfig, { status }: OutboundResponse): boolean {
  const isJson = parse === undefined || parse.format === "json";
  return status !== 204 && isJson && !isAsked(paginate) && listPath(records ?? parse?.records) !== null;
}

async function listRecords(
  { expressions, signal }: NodeContext,
  { parse, records }: HttpConfig,
  response: OutboundResponse,
  { place, missing }: PagePlace,
): Promise<Page["batches"]> {
  const contentType = response.headers.get("content-type");
  const { body } = response;
  const charset = charsetOf(contentType);
  const open = response.kept?.open ?? (() => slicesOf(body));
  const config: ParseConfig = { ...(parse ?? { format: "json" }), ...(records !== undefined && { records }) };
  const named = config.format === "json" ? `${place}: the response (${mediaType(contentType)})` : place;
  const recordsPlace = `${place}: ${config.records === undefined ? "the response" : "records"}`;
  const tools: ParseTools = { expressions, signal, place: named, recordsPlace, missing };
  if (response.kept === null && body.length <= SLICE_BYTES && isUtf8Text(body, config.charset ?? charset))
    return [...(await recordsOfWhole({ form: "text", text: decodeText(body) }, config.records, tools))];
  return parseRecords({ form: "bytes", open, charset }, config, tools);
}

const isUtf8Text = (body: Uint8Array, charset: string | null): boolean =>
  (charset === null || /^utf-?8$/.test(charset)) && isUtf8(body);

const decodeText = (body: Uint8Array): string =>
  Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");

/** Yields to the event loop between slices. */
async function* slicesOf(body: Uint8Array): AsyncIterable<Uint8Array> {
  for (let start = 0; start < body.length; start += SLICE_BYTES) {
    yield body.subarray(start, start + SLICE_BYTES);
    await setImmediate();
  }
}
