import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import {
  OutboundError,
  type OutboundFailure,
  type OutboundRequest,
  type OutboundResponse,
} from "#domain/http-exchange.ts";
import { REDACTED, withoutHandles } from "#domain/handle-text.ts";
import type { Json } from "#domain/json.ts";
import { bytesWithoutHandles, type Redactor } from "#engine/redaction/redact.ts";
import type { RecordedPages } from "./page-recording.ts";
import { describeContent, inUtf8, type RecordedBody } from "./recorded-body.ts";
import { absoluteUrl, type TargetSession } from "#engine/login/target-session.ts";

/** Longer bodies are compared by their hash. */
const SHOWN_BODY_BYTES_MAX = 65_536;
/** The headers that nodes read. An allowlist, so that no header with a secret is recorded by oversight. */
const KEPT_HEADERS: ReadonlySet<string> = new Set(
  "content-type content-disposition content-location link location retry-after etag last-modified".split(" "),
);

interface RecordedRequest {
  readonly method: string;
  readonly url: string;
  /** The text, or the hash of a long or binary body. */
  readonly body?: string;
}

/** One request of a node and its outcome. */
export type Exchange =
  | {
      readonly request: RecordedRequest;
      readonly response: {
        readonly status: number;
        readonly url: string;
        readonly headers: { readonly [name: string]: string };
        readonly body: RecordedBody;
      };
    }
  | {
      readonly request: RecordedRequest;
      readonly failure: { readonly kind: OutboundFailure; readonly message: string };
    };

/**
 * A target that records its exchanges. The login's cookies, headers and parameters are added below it, and a login's own requests
 * don't pass through it, so that a recording can't contain them. `redact` knows every value of the credentials, because targets may
 * echo them.
 */
export function recordTarget(
  target: TargetSession,
  origins: readonly string[],
  redact: Redactor,
  exchanges: Exchange[],
): TargetSession {
  return {
    ...target,
    // No body is stored in a file here: a recording has every body, however long.
    send: async (request, signal) => {
      const asked = await describeRequest(request, origins);
      const recorded: RecordedRequest = {
        ...asked,
        url: inOneSpelling(redact.text(asked.url)),
        ...(asked.body === undefined ? {} : { body: await redact.body(asked.body) }),
      };
      try {
        const response = await target.send(request, signal);
        exchanges.push({ request: recorded, response: await describeResponse(response, redact) });
        return response;
      } catch (error) {
        if (error instanceof OutboundError) {
          const failure = { kind: error.failure, message: redact.message(error.message) };
          exchanges.push({ request: recorded, failure });
        }
        throw error;
      }
    },
  };
}

/** A target that answers from a recording: equal requests in the order of their exchanges, and no other request. */
export function replayTarget(
  exchanges: readonly Exchange[],
): (request: OutboundRequest, origins: readonly string[]) => Promise<OutboundResponse> {
  const left = Map.groupBy(exchanges, ({ request }) => keyOf(request));
  return async (request, origins) => {
    const asked = await describeRequest(request, origins);
    const exchange = left.get(keyOf(asked))?.shift();
    if (exchange === undefined) throw notRecorded(asked, exchanges);
    if ("failure" in exchange) throw new OutboundError(exchange.failure.kind, exchange.failure.message);
    const { status, url, headers, body } = exchange.response;
    const bytes = typeof body === "string" ? Buffer.from(body, "utf8") : Buffer.from(body.base64, "base64");
    return {
      status,
      url,
      isRedirected: inOneSpelling(url) !== inOneSpelling(asked.url),
      headers: new Map(Object.entries(headers)),
      body: bytes,
      kept: null,
      text: () => bytes.toString("utf8"),
    };
  };
}

const keyOf = ({ method, url, body }: RecordedRequest): string =>
  JSON.stringify([method, inOneSpelling(url), body === undefined ? null : inOneSpelling(body)]);

/** `refused`: retrying does not help. */
function notRecorded(asked: RecordedRequest, exchanges: readonly Exchange[]): OutboundError {
  const same = exchanges.filter(({ request }) => keyOf(request) === keyOf(asked)).length;
  const near = exchanges.some(({ request }) => request.method === asked.method && request.url === asked.url);
  const why =
    same > 0
      ? `the recording has it ${same === 1 ? "once" : `${same} times`}, but it was sent again`
      : near
        ? "the recording has it with another body"
        : "it is not in the recording";
  return new OutboundError("refused", `${asked.method} ${asked.url}: ${why}; record it again with --record`);
}

async function describeRequest(
  request: OutboundRequest,
  origins: readonly string[],
): Promise<RecordedRequest> {
  const url = withoutHandles(absoluteUrl(request, origins).href);
  const bytes = await bodyBytes(request.body);
  if (bytes === null) return { method: request.method, url };
  return {
    method: request.method,
    url,
    body: describeBody(bytesWithoutHandles(withoutBoundary(bytes, request))),
  };
}

/** The placeholder of a secret in a recorded link may come back encoded, when a node puts it into a URL or a form. */
const inOneSpelling = (text: string): string => text.replaceAll(REDACTED, encodeURIComponent(REDACTED));

async function bodyBytes(body: OutboundRequest["body"]): Promise<Buffer | null> {
  if (body === undefined) return null;
  if (typeof body === "string") return Buffer.from(body, "utf8");
  if (body instanceof Uint8Array) return Buffer.from(body);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body.open()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Every multipart body has a new boundary. */
function withoutBoundary(bytes: Buffer, { headers = [] }: OutboundRequest): Buffer {
  const type = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
  const boundary = /^multipart\/.*;\s*boundary="?([^";\s]+)/i.exec(type)?.[1];
  if (boundary === undefined) return bytes;
  return Buffer.from(bytes.toString("latin1").replaceAll(boundary, "boundary"), "latin1");
}

function describeBody(bytes: Buffer): string {
  return bytes.length <= SHOWN_BODY_BYTES_MAX && isUtf8(bytes)
    ? bytes.toString("utf8")
    : `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

async function describeResponse(response: OutboundResponse, redact: Redactor) {
  const headers = [...response.headers].filter(([name]) => KEPT_HEADERS.has(name));
  return {
    status: response.status,
    url: redact.text(response.url),
    headers: Object.fromEntries(headers.map(([name, value]) => [name, redact.text(inUtf8(name, value))])),
    body: await describeContent(
      Buffer.from(response.body),
      response.headers.get("content-type") ?? "",
      redact,
      () => response.text(),
    ),
  };
}

/** The parts of a run that a recording has besides its exchanges. */
export interface Recording {
  readonly latchkey_recording: 1;
  readonly blueprint: string;
  readonly run: { readonly id: string; readonly key: string };
  readonly metadata: { readonly [name: string]: Json };
  /** Texts by refKey. */
  readonly inputs: { readonly [refKey: string]: string };
  readonly exchanges: readonly Exchange[];
  /** What the pages of `browser` nodes were answered; a recording that is older than these has none. */
  readonly pages?: RecordedPages;
  /** By result key. */
  readonly results: { readonly [key: string]: Json };
}
