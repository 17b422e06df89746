import { isUtf8 } from "node:buffer";
import { REDACTED } from "#domain/handle-text.ts";
import { OutboundError, type OutboundRequest, type OutboundResponse } from "#domain/http-exchange.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { decodeText } from "#outbound/read-body.ts";
import {
  cleanBytes,
  cleanLines,
  cleanStream,
  cleanText,
  findInSteps,
  inTurns,
  type Cleaning,
} from "./clean-text.ts";
import { replaceCuts, type Place } from "./cut-json.ts";
import type { Handles } from "./handles.ts";
import { mayHoldHandle, putBack } from "./put-back.ts";
import { cookieSecrets, type RunSecrets } from "./run-secrets.ts";

/**
 * The redaction between a target and the nodes of a Blueprint. No response reaches a node, expectation or expression with a secret of
 * the run in it, so that no author's expression can transform a secret into a form that the search misses. Values that the target
 * itself gave become handles, which are replaced by the values in requests to it.
 */
export interface Door {
  /** Registers the cookies that a response sets, before anything else sees the response. */
  learn(cookies: readonly string[]): void;
  /** The response that nodes see. */
  enter(response: OutboundResponse): Promise<OutboundResponse>;
  /** A body from this origin, redacted while it is saved to a file. */
  enterFile(bytes: AsyncIterable<Uint8Array>, origin: string): AsyncIterable<Uint8Array>;
  /** Records from content that was packed on arrival (a spreadsheet, a PDF, a page in another charset). */
  enterRecords(batches: RecordBatches): RecordBatches;
  /** The message of a failed request. */
  message(text: string): string;
  /** A node's request to `url` in the form in which it is sent. Throws OutboundError. */
  leave(request: OutboundRequest, url: URL): OutboundRequest;
}

/** `handles`: those of the requests' credential; null: the requests have none. */
export function openDoor(secrets: RunSecrets, handles: Handles | null): Door {
  const plain: Cleaning = { secrets, place: () => REDACTED };
  const cleaningOf = (origin: string): Cleaning =>
    handles === null ? plain : { secrets, place: placeOf(handles, origin) };
  const isIdle = (): boolean => secrets.inTexts.size === 0;
  return {
    learn(cookies) {
      const values = cookieSecrets(cookies);
      secrets.addPassing(values);
      handles?.addPassing(values);
    },
    enter: async (response) =>
      isIdle() ? response : await cleanResponse(response, cleaningOf(new URL(response.url).origin)),
    enterFile: (bytes, origin) => (isIdle() ? bytes : cleanStream(bytes, cleaningOf(origin))),
    enterRecords: (batches) => (isIdle() ? batches : cleanRecords(batches, plain)),
    message: (text) => cleanText(cleanText(text, plain), plain, secrets.inMessages),
    leave: (request, url) => {
      if ((handles === null && isIdle()) || !mayHoldHandle(request)) return request;
      return putBack(request, url, (handle) => {
        const value = handles?.read(handle, url.origin) ?? "foreign";
        if (value === "replaced") throw new OutboundError("refused", REPLACED);
        return value === "foreign" ? null : value;
      });
    },
  };
}

const REPLACED =
  "the request contains a value of a login session that no longer exists: since a node read it (a cookie, or what the login extracts), " +
  "the run has logged in again, or the target has set many other cookies. Trigger the run again; with a `cache` in the strategy " +
  "a run that changes its worker keeps its session";

function placeOf(handles: Handles, origin: string): Place {
  return (found, isNumber) => {
    const text = Buffer.from(found).toString(isUtf8(found) ? "utf8" : "latin1");
    return handles.find(text, isNumber, origin) ?? REDACTED;
  };
}

async function cleanResponse(response: OutboundResponse, cleaning: Cleaning): Promise<OutboundResponse> {
  const { kept, url } = response;
  const { origin } = new URL(url);
  const headers = await cleanHeaders(response.headers, cleaning);
  const body = kept === null ? await cleanBody(response, cleaning) : null;
  const address = origin + cleanText(url.slice(origin.length), cleaning);
  if (headers === response.headers && body === null && address === url) return response;
  if (body === null) return { ...response, url: address, headers };
  const type = headers.get("content-type");
  const shown =
    body.isUtf8 && type !== undefined ? new Map(headers).set("content-type", inUtf8(type)) : headers;
  const { bytes } = body;
  const text = (): string => decodeText(bytes, shown.get("content-type"));
  return { ...response, url: address, headers: shown, body: bytes, text };
}

/** Values are byte strings, one byte per character. */
async function cleanHeaders(
  headers: ReadonlyMap<string, string>,
  { secrets, place }: Cleaning,
): Promise<ReadonlyMap<string, string>> {
  const search = secrets.inTexts;
  const clean = async (text: string): Promise<string> => {
    const bytes = Buffer.from(text, "latin1");
    const cuts = await inTurns(findInSteps(search, bytes));
    return cuts.length === 0
      ? text
      : replaceCuts(bytes, cuts, 0, (found) => place(found, false)).toString("latin1");
  };
  const all = [...headers].flat().join("\n");
  if ((await clean(all)) === all) return headers;
  secrets.countChange();
  const cleaned = new Map<string, string>();
  for (const [name, value] of headers)
    cleaned.set(secrets.isKept(name) ? name : await clean(name), await clean(value));
  return cleaned;
}

interface CleanBody {
  readonly bytes: Buffer;
  /** The body was re-encoded, in another charset than its own. */
  readonly isUtf8: boolean;
}

/** null: nothing was found. */
async function cleanBody(response: OutboundResponse, cleaning: Cleaning): Promise<CleanBody | null> {
  const { body } = response;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const type = response.headers.get("content-type") ?? "";
  if (/charset\s*=\s*"?(?!utf-?8\b|us-ascii\b|iso-8859-1\b)[\w.:-]+/i.test(type)) {
    const clean = await inTurns(cleanBytes(Buffer.from(response.text(), "utf8"), cleaning));
    if (clean !== null) return { bytes: clean, isUtf8: true };
  }
  const clean = await inTurns(cleanBytes(bytes, cleaning));
  return clean === null ? null : { bytes: clean, isUtf8: false };
}

const inUtf8 = (type: string): string => type.replace(/charset\s*=\s*"?[^";\s]+"?/i, "charset=utf-8");

async function* cleanRecords(batches: RecordBatches, cleaning: Cleaning): RecordBatches {
  for await (const batch of batches) {
    const { touched } = await inTurns(cleanLines(batch, cleaning));
    yield touched.size === 0 ? batch : batch.map((record: DataRecord, place) => touched.get(place) ?? record);
  }
}
