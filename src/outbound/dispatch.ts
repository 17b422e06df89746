import { Readable } from "node:stream";
import { assert } from "#lib/assert.ts";
import { currentTraceparent, inSpan, isTracing } from "#lib/tracing.ts";
import type { Deadline } from "./deadline.ts";
import { GateError } from "./gate-error.ts";
import { ACCEPTED_ENCODINGS } from "./read-body.ts";
import type { Hop } from "./redirect.ts";
import { headersOf, type Header } from "./request-headers.ts";
import type { Answer, Ask } from "./whole-answer.ts";

export const HEADER_BYTES_MAX = 65_536;

const DEFAULT_HEADERS: readonly Header[] = [
  ["accept", "*/*"],
  ["accept-encoding", ACCEPTED_ENCODINGS],
  ["user-agent", "Latchkey"],
];

/** How hops are sent. */
export interface Way {
  readonly ask: Ask;
  /** Whether they have the `traceparent` of their span. */
  readonly tellsTraces: boolean;
}

/** What a hop's policy says of it. */
interface HopPolicy {
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly keep?: unknown;
  mayLeave?(): void;
}

/** Sends one hop, in a span of its own. The span has nothing of the request but its method and where it goes. */
export async function dispatch(
  way: Way,
  hop: Hop,
  added: readonly Header[],
  policy: HopPolicy,
  deadline: Deadline,
): Promise<Answer> {
  if (!isTracing()) return await sendHop(way, hop, added, policy, deadline);
  const { method, url } = hop;
  const attributes = {
    "http.request.method": method,
    "server.address": url.hostname,
    "server.port": Number(url.port) || (url.protocol === "https:" ? 443 : 80),
    "url.scheme": url.protocol.slice(0, -1),
  };
  return await inSpan(method, { kind: "client", attributes }, async (span) => {
    const answer = await sendHop(way, hop, added, policy, deadline);
    span.set("http.response.status_code", answer.statusCode);
    return answer;
  });
}

async function sendHop(
  { ask, tellsTraces }: Way,
  hop: Hop,
  added: readonly Header[],
  policy: HopPolicy,
  deadline: Deadline,
): Promise<Answer> {
  const { url, method, body } = hop;
  const headers = headersOf(hop.headers, added, DEFAULT_HEADERS, url.host).flat();
  const traceparent = tellsTraces ? currentTraceparent() : null;
  if (traceparent !== null) headers.push("traceparent", traceparent);
  const isStream = body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array);
  if (isStream) headers.push("content-length", String(body.sizeBytes));
  const content = isStream ? watchFailure(body.open()) : null;
  let refusal: { readonly error: unknown } | null = null;
  const mayLeave = (): void => {
    try {
      policy.mayLeave?.();
    } catch (error) {
      refusal = { error };
      throw error;
    }
  };
  const asking = {
    beforeFirstByte: policy.mayLeave && mayLeave,
    wholeBytesMax: policy.keep ? null : policy.maxBytes,
    deadline,
  };
  try {
    // Otherwise the library would still connect.
    if (deadline.failure !== null) throw gateError(null, url.host, policy, deadline);
    return await ask(
      {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers,
        body:
          content === null
            ? ((body as string | Uint8Array | undefined) ?? null)
            : Readable.from(content.chunks, { objectMode: false }),
      },
      asking,
    );
  } catch (error) {
    if (refusal !== null) throw (refusal as { readonly error: unknown }).error;
    // The error comes from the storage of the body, not from the other side.
    if (content !== null && content.failure !== null && deadline.failure === null) throw content.failure;
    throw gateError(error, url.host, policy, deadline);
  }
}

interface WatchedChunks {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** The error that ended the bytes, if any. */
  readonly failure: Error | null;
}

/** Distinguishes a failure of the source from one of the consumer. */
export function watchFailure(bytes: AsyncIterable<Uint8Array>): WatchedChunks {
  let failure: Error | null = null;
  async function* watched(): AsyncIterable<Uint8Array> {
    try {
      yield* bytes;
    } catch (error) {
      failure = error instanceof Error ? error : new Error("bytes could not be read", { cause: error });
      throw failure;
    }
  }
  return {
    chunks: watched(),
    get failure() {
      return failure;
    },
  };
}

/** Describes a failure without the messages and causes of the network libraries, because these quote requests. */
export function gateError(
  error: unknown,
  host: string,
  policy: Pick<HopPolicy, "timeoutMs">,
  deadline: Deadline,
): GateError {
  if (deadline.failure === "cancelled")
    return new GateError("cancelled", `the request to ${host} was cancelled`);
  if (deadline.failure === "timeout")
    return new GateError("timeout", `${host} sent no complete response within ${policy.timeoutMs} ms`);
  if (error instanceof GateError) return error;
  assert(error instanceof Error, "the network library throws errors");
  const code =
    "code" in error && typeof error.code === "string" && /^[A-Z0-9_]{1,60}$/.test(error.code)
      ? error.code
      : null;
  switch (code) {
    case "UND_ERR_HEADERS_OVERFLOW":
      return new GateError("too_large", `the response headers of ${host} are over ${HEADER_BYTES_MAX} bytes`);
    case "UND_ERR_CONNECT_TIMEOUT":
      return new GateError("unreachable", `no connection to ${host} in time`);
    case "ECONNREFUSED":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return new GateError("unreachable", `the connection to ${host} failed (${code})`);
    case "UND_ERR_DESTROYED":
    case "UND_ERR_CLOSED":
      return new GateError(
        "cancelled",
        `the request to ${host} was cancelled, because the service is stopping`,
      );
    case "UND_ERR_INVALID_ARG":
      return new GateError("refused", `the request to ${host} is not valid HTTP`);
    default:
      return new GateError(
        "connection",
        `the connection to ${host} failed${code === null ? "" : ` (${code})`}`,
      );
  }
}
