import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { NodeFailure } from "#nodes/define-node.ts";
import { kindOf } from "#nodes/records/expression-value.ts";
import type { Paginate } from "./paginate-config.ts";
import type { Pairs } from "./http-request.ts";
import { nextLink } from "./link-header.ts";
import type { PageLead } from "./page-repeats.ts";

/** How to request a page: `pairs` override the node's query or, if the page has its own url, replace it. */
export interface PageAt {
  readonly url: string | null;
  readonly pairs: Pairs;
  /** Variables of the page, for the request's templates and for expressions over its body. */
  readonly variables: JsonObject;
  /** The page number or the offset; 0 if there is none. */
  readonly position: number;
}

/** The body's information about the next page. */
export interface PageInfo {
  /** The value of `cursor`, `next_url` or `next_css`. */
  readonly lead: Json | undefined;
  /** The value of `while`; null: the document has none. */
  readonly isMore: boolean | null;
}

export interface PageRead extends PageInfo {
  readonly response: OutboundResponse;
  readonly records: number;
  readonly place: string;
}

export function firstPage(paginate: Paginate | undefined): PageAt {
  const position = paginate?.page ?? paginate?.offset;
  if (paginate === undefined || position === undefined)
    return { url: null, pairs: [], variables: paginate === undefined ? {} : { page: 1 }, position: 0 };
  return numberedPage(paginate, position, paginate.page ?? 1);
}

/** Whether more pages follow (docs/nodes/http.md). Null: this was the last one. `number` is the number of the next page, from 1. */
export function nextPage(paginate: Paginate, at: PageAt, number: number, read: PageRead): PageAt | null {
  if (read.isMore === false) return null;
  const page = (paginate.page ?? 1) + number - 1;
  if (paginate.cursor !== undefined) return pageOfCursor(paginate, page, read);
  if (paginate.page === undefined && paginate.offset === undefined) {
    const url = paginate.link_header === undefined ? leadUrl(paginate, read) : linkedUrl(read);
    return url === null ? null : { url, pairs: [], variables: { page }, position: 0 };
  }
  if (paginate.page !== undefined)
    return read.isMore === null && read.records === 0 ? null : numberedPage(paginate, page, page);
  const isShort = read.records === 0 || (paginate.size !== undefined && read.records < paginate.size);
  return read.isMore === null && isShort ? null : numberedPage(paginate, at.position + read.records, page);
}

/** How the next page differs from this one, for the detection of cycles. */
export function leadTo({ url, pairs, variables }: PageAt, paginate: Paginate): PageLead {
  if (url !== null) return { kind: "address", url };
  const kind = paginate.cursor === undefined ? (paginate.page === undefined ? "offset" : "page") : "cursor";
  const asked = pairs[0] === undefined ? `\`$${kind}\` of the request` : `the parameter \`${pairs[0][0]}\``;
  const value = JSON.stringify(variables["cursor"]);
  return kind === "cursor" ? { kind, asked, value } : { kind: "number", asked };
}

function numberedPage(paginate: Paginate, position: number, page: number): PageAt {
  const { param, size, size_param: sizeParam } = paginate;
  const own: Pairs = param === undefined ? [] : [[param, String(position)]];
  const sizePairs: Pairs = size !== undefined && sizeParam !== undefined ? [[sizeParam, String(size)]] : [];
  const variables = paginate.offset === undefined ? { page } : { page, offset: position };
  return { url: null, pairs: [...own, ...sizePairs], variables, position };
}

function pageOfCursor({ param }: Paginate, page: number, { lead: cursor, place }: PageRead): PageAt | null {
  if (isEnd(cursor)) return null;
  if (typeof cursor !== "string" && typeof cursor !== "number") {
    throw new NodeFailure(
      `${place}: paginate.cursor evaluates to ${kindOf(cursor)}; it must be a string, a number, or nothing at the end.`,
    );
  }
  const pairs: Pairs = param === undefined ? [] : [[param, String(cursor)]];
  return { url: null, pairs, variables: { page, cursor }, position: 0 };
}

const isEnd = (lead: Json | undefined): boolean =>
  lead === undefined || lead === null || lead === false || lead === "";

/** The egress gate refuses a link that leads outside the node's hosts. */
function linkedUrl({ response, place }: PageRead): string | null {
  const link = nextLink(response.headers.get("link") ?? "");
  return link === null
    ? null
    : resolved(link, response, `${place}: the Link header's rel=next is not a valid url.`);
}

/** Like `linkedUrl`: relative to the page's final URL, after redirects. */
function leadUrl(paginate: Paginate, { lead, response, place }: PageRead): string | null {
  if (isEnd(lead)) return null;
  const key = paginate.next_url === undefined ? "next_css" : "next_url";
  if (typeof lead !== "string")
    throw new NodeFailure(
      `${place}: paginate.${key} evaluates to ${kindOf(lead)}; it must be a url, or nothing at the end.`,
    );
  return resolved(lead.trim(), response, `${place}: paginate.${key} is not a valid url.`);
}

function resolved(link: string, { url: base }: OutboundResponse, problem: string): string {
  const url = URL.parse(link, base);
  if (url === null) throw new NodeFailure(problem);
  url.hash = "";
  return url.href;
}

/** The value of `while`. Throws NodeFailure unless it is true or false: so that a missing field does not end the pagination silently. */
export function readWhile(value: Json | undefined, place: string): boolean {
  if (typeof value === "boolean") return value;
  throw new NodeFailure(
    `${place}: paginate.while evaluates to ${kindOf(value)}; it must be true or false: write a comparison, or \`$exists(…)\`.`,
  );
}
