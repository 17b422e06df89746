import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { NodeFailure } from "#nodes/define-node.ts";
import { kindOf } from "#nodes/records/expression-value.ts";
import type { Paginate } from "./paginate-config.ts";
import type { Pairs } from "./http-request.ts";
import { nextLink } from "./link-header.ts";
import type { PageLead } from "./page-repeats.ts";

/** Where a page is: the pairs go over the query of the node, or, with a url of its own, stand instead of it. */
export interface PageAt {
  readonly url: string | null;
  readonly pairs: Pairs;
  /** What asks for it: variables of the request's templates and of the expressions over its body. */
  readonly variables: JsonObject;
  /** The page number or the offset; 0 where there is none. */
  readonly position: number;
}

/** What the body of a page says of the next one. */
export interface PageSays {
  /** What `cursor`, `next_url` or `next_css` gives. */
  readonly lead: Json | undefined;
  /** What `while` gives; null: the document has none. */
  readonly isMore: boolean | null;
}

export interface PageRead extends PageSays {
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

/** Whether more pages follow (docs/nodes/http.md). Null = this was the last one. `number` is that of the next page, from 1. */
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

/** By what the next page differs from this one, for those who look out for circles. */
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
      `${place}: paginate.cursor gives ${kindOf(cursor)}; it must give a text, a number, or nothing at the end.`,
    );
  }
  const pairs: Pairs = param === undefined ? [] : [[param, String(cursor)]];
  return { url: null, pairs, variables: { page, cursor }, position: 0 };
}

const isEnd = (lead: Json | undefined): boolean =>
  lead === undefined || lead === null || lead === false || lead === "";

/** The gate refuses a link that leads out of the node's hosts. */
function linkedUrl({ response, place }: PageRead): string | null {
  const link = nextLink(response.headers.get("link") ?? "");
  return link === null
    ? null
    : resolved(link, response, `${place}: the Link header's rel=next is not a url.`);
}

/** As `linkedUrl`: relative to where the page came from, after redirects. */
function leadUrl(paginate: Paginate, { lead, response, place }: PageRead): string | null {
  if (isEnd(lead)) return null;
  const key = paginate.next_url === undefined ? "next_css" : "next_url";
  if (typeof lead !== "string")
    throw new NodeFailure(
      `${place}: paginate.${key} gives ${kindOf(lead)}; it must give an address, or nothing at the end.`,
    );
  return resolved(lead.trim(), response, `${place}: paginate.${key} gives what is not a url.`);
}

function resolved(link: string, { url: base }: OutboundResponse, problem: string): string {
  const url = URL.parse(link, base);
  if (url === null) throw new NodeFailure(problem);
  url.hash = "";
  return url.href;
}

/** What `while` gives. Throws NodeFailure for what is neither true nor false: a name that is not there must not end the pages. */
export function readWhile(value: Json | undefined, place: string): boolean {
  if (typeof value === "boolean") return value;
  throw new NodeFailure(
    `${place}: paginate.while gives ${kindOf(value)}; it must give true or false: write a comparison, or \`$exists(…)\`.`,
  );
}
