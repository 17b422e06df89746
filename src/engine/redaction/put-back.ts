import { isUtf8 } from "node:buffer";
import {
  HANDLE_CHARACTERS,
  HANDLE_PREFIX,
  HANDLE_SOURCE,
  isHandle,
  REDACTED,
  withoutHandles,
} from "#domain/handle-text.ts";
import { OutboundError, type OutboundRequest, type StreamedBody } from "#domain/http-exchange.ts";
import type { HandleValue } from "./handles.ts";
import { bytesWithoutHandles } from "./redact.ts";

/** The value of a handle in this request; null: none. */
export type ReadHandle = (handle: string) => HandleValue | null;

/**
 * Replaces the handles in a request with their values, encoded for the place, where a handle is a complete query value, path segment,
 * header or body field. Elsewhere `[REDACTED]` is sent. `url` is the request's absolute URL.
 */
export function putBack(request: OutboundRequest, url: URL, read: ReadHandle): OutboundRequest {
  const text = (value: string): string => wholeOr(value, read, ({ text }) => text) ?? withoutHandles(value);
  const headers = request.headers?.map(([name, value]) => [name, headerText(name, value, text)] as const);
  const type = headers?.find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
  return {
    ...request,
    url: addressWith(url, read),
    ...(request.query && {
      query: request.query.map(([name, value]) => [withoutHandles(name), text(value)] as const),
    }),
    ...(headers && { headers }),
    ...(request.body === undefined ? {} : { body: bodyWith(request.body, type.toLowerCase(), read) }),
  };
}

/** Whether a request may contain a handle. Streamed bodies are checked while they are sent. */
export function mayHoldHandle({ url, query = [], headers = [], body }: OutboundRequest): boolean {
  if (body !== undefined && typeof body !== "string") return true;
  return [url, body ?? "", ...query.flat(), ...headers.flat()].some((text) => text.includes(HANDLE_PREFIX));
}

function wholeOr(text: string, read: ReadHandle, write: (value: HandleValue) => string): string | null {
  const value = isHandle(text) ? read(text) : null;
  return value === null ? null : write(value);
}

/** The same rule as in `headerPairs` of nodes. */
const HEADER_VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;

function headerText(name: string, value: string, text: (value: string) => string): string {
  const sent = text(value);
  if (sent === value || HEADER_VALUE.test(sent)) return sent;
  throw new OutboundError(
    "refused",
    `the header ${withoutHandles(name)} would have a value with a character that headers can't contain`,
  );
}

const IN_PATH = new RegExp(`(^|[/;=,])(${HANDLE_SOURCE})(?=$|[/;,])`, "g");
const IN_QUERY = new RegExp(`(^|[?&;=])(${HANDLE_SOURCE})(?=$|[&;])`, "g");

function addressWith(url: URL, read: ReadHandle): string {
  const address = new URL(url);
  const fill = (text: string, whole: RegExp): string =>
    withoutHandles(
      replaceWhole(text, whole, read, ({ text }) => inAddress(text)),
      encodeURIComponent(REDACTED),
    );
  if (address.pathname.includes(HANDLE_PREFIX)) address.pathname = fill(address.pathname, IN_PATH);
  if (address.search.includes(HANDLE_PREFIX)) address.search = fill(address.search, IN_QUERY);
  address.hash = "";
  return address.href;
}

/** Already percent-encoded text stays: it comes from a link. */
const inAddress = (text: string): string =>
  /^(?:[\w.~-]|%[0-9A-Fa-f]{2})*$/.test(text) ? text : encodeURIComponent(text.toWellFormed());

/** `whole` has two groups: the text before, and the handle. */
function replaceWhole(
  text: string,
  whole: RegExp,
  read: ReadHandle,
  write: (value: HandleValue) => string,
): string {
  if (!text.includes(HANDLE_PREFIX)) return text;
  return text.replace(whole, (all: string, before: string, handle: string) => {
    const value = read(handle);
    return value === null ? all : before + write(value);
  });
}

function bodyWith(
  body: NonNullable<OutboundRequest["body"]>,
  type: string,
  read: ReadHandle,
): NonNullable<OutboundRequest["body"]> {
  if (typeof body === "string") return textBody(body, type, read);
  if (body instanceof Uint8Array) {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    if (!bytes.includes(HANDLE_PREFIX, 0, "latin1")) return body;
    return isUtf8(bytes)
      ? Buffer.from(textBody(bytes.toString("utf8"), type, read), "utf8")
      : bytesWithoutHandles(bytes);
  }
  return streamedBody(body, read);
}

const IN_JSON = new RegExp(`((?<!\\\\))"(${HANDLE_SOURCE})"(?!\\s*:)`, "g");
const IN_MARKUP = new RegExp(`([>"'])(${HANDLE_SOURCE})(?=[<"'])`, "g");
const IN_FORM = new RegExp(`(^|[&=])(${HANDLE_SOURCE})(?=$|&)`, "g");

function textBody(body: string, type: string, read: ReadHandle): string {
  if (!body.includes(HANDLE_PREFIX)) return body;
  const [whole, write] = type.includes("urlencoded")
    ? [IN_FORM, ({ text }: HandleValue) => new URLSearchParams([["", text]]).toString().slice(1)]
    : type.includes("json")
      ? [IN_JSON, ({ text, isNumber }: HandleValue) => (isNumber ? text : JSON.stringify(text))]
      : /\b(?:xml|html)\b/.test(type)
        ? [IN_MARKUP, ({ text }: HandleValue) => inMarkup(text)]
        : [null, ({ text }: HandleValue) => text];
  if (whole === null) return wholeOr(body, read, write) ?? withoutHandles(body);
  return withoutHandles(replaceWhole(body, whole, read, write));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const inMarkup = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? character);

const PART = new RegExp(`^((?:[^\\r\\n]+\\r\\n)+\\r\\n)(${HANDLE_SOURCE})(?=\\r\\n$)`, "g");

/** Form fields are replaced; a file keeps its announced size. */
function streamedBody(body: StreamedBody, read: ReadHandle): StreamedBody {
  if (body.sections === undefined)
    return { sizeBytes: body.sizeBytes, open: () => withoutHandlesOfSize(body.open()) };
  const sections = body.sections.map((section): Uint8Array | StreamedBody => {
    if (!(section instanceof Uint8Array)) return streamedBody(section, read);
    const text = Buffer.from(section).toString("utf8");
    const filled = replaceWhole(text, PART, read, (value) => value.text);
    return text.includes(HANDLE_PREFIX) ? Buffer.from(withoutHandles(filled), "utf8") : section;
  });
  return sectionsBody(sections);
}

/** A body that is sent in sections. */
function sectionsBody(sections: readonly (Uint8Array | StreamedBody)[]): StreamedBody {
  return {
    sections,
    sizeBytes: sections.reduce(
      (sum, section) => sum + (section instanceof Uint8Array ? section.byteLength : section.sizeBytes),
      0,
    ),
    open: async function* () {
      for (const section of sections) {
        if (section instanceof Uint8Array) yield section;
        else yield* section.open();
      }
    },
  };
}

const SIZED = REDACTED.padEnd(HANDLE_CHARACTERS);

async function* withoutHandlesOfSize(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let rest = Buffer.alloc(0);
  for await (const chunk of source) {
    const bytes = sized(rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]));
    const end = Math.max(0, bytes.length - HANDLE_CHARACTERS + 1);
    rest = Buffer.from(bytes.subarray(end));
    if (end > 0) yield bytes.subarray(0, end);
  }
  if (rest.length > 0) yield rest;
}

const sized = (bytes: Buffer): Buffer =>
  bytes.includes(HANDLE_PREFIX, 0, "latin1")
    ? Buffer.from(withoutHandles(bytes.toString("latin1"), SIZED), "latin1")
    : bytes;
