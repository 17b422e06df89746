import { Readable } from "node:stream";
import { Agent, Pool, type Dispatcher } from "undici";
import { assert } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { metrics } from "#lib/metrics.ts";
import { addressRules, type AddressRules } from "./address-rules.ts";
import { checkedConnect, resolveBySystem, type ClientCertificate, type Resolve } from "./checked-connect.ts";
import { startDeadline, type Deadline } from "./deadline.ts";
import { askBeforeFirstByte } from "./first-byte.ts";
import { GateError } from "./gate-error.ts";
import { openGateProxy, type GateProxy, type ProxyPolicy } from "./gate-proxy.ts";
import { ACCEPTED_ENCODINGS, decodeText, readBody, readCoding, wholeBody } from "./read-body.ts";
import { nextHop, redirectTarget, type Body, type Hop } from "./redirect.ts";
import { headersOf, type Header } from "./request-headers.ts";

export interface GateRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: readonly Header[];
  readonly body?: Body | undefined;
}

/** What one request may do. The policy belongs to the request: connections are shared, permissions are not. */
export interface GatePolicy {
  /** The origins (scheme, host and port, as in `URL.origin`) that any hop may reach. No others are allowed. */
  readonly origins: readonly string[];
  /** 0: a redirect is returned as the response. */
  readonly redirectsMax: number;
  /** Longest body, decompressed. */
  readonly maxBytes: number;
  /** A longer body is cut there instead of refused: the status is what counts. */
  readonly cutsBody?: boolean;
  /** Where a body is streamed to, instead of into memory; null: it is read completely. */
  readonly keep?: KeepBody | null;
  /** Limit for everything: connecting, all hops, the whole body. */
  readonly timeoutMs: number;
  /** Additional headers for one hop: its cookies, and the session's headers where allowed. They override the request's own. */
  prepareHop?(
    url: URL,
    info: { readonly sameOriginAsFirst: boolean; readonly method: string },
  ): readonly Header[] | Promise<readonly Header[]>;
  /** The URL of one hop as it is sent, with parameters that only the first origin may see. Origin and path must not change. */
  prepareUrl?(url: URL, info: { readonly sameOriginAsFirst: boolean }): URL;
  /**
   * Called before the first byte of each hop, once its connection is established. If it throws, the hop is not sent, and `send`
   * throws the same error.
   */
  mayLeave?(): void;
  /** Receives the `set-cookie` lines of every hop. */
  absorb?(url: URL, setCookie: readonly string[]): void;
}

export interface GateResponse {
  readonly status: number;
  /** The final URL, after redirects. */
  readonly url: string;
  readonly isRedirected: boolean;
  /** Lower-case names. Several values of one name are joined by ", " (`set-cookie` is left out). */
  readonly headers: ReadonlyMap<string, string>;
  /** Empty if it was streamed elsewhere. */
  readonly body: Uint8Array;
  readonly kept: KeptBody | null;
  text(): string;
}

interface KeptBody {
  readonly sizeBytes: number;
  readonly open: () => AsyncIterable<Uint8Array>;
}

type KeepBody = (bytes: AsyncIterable<Uint8Array>) => Promise<() => AsyncIterable<Uint8Array>>;

/** The only path for outgoing HTTP requests (docs/decisions/0015). */
export interface Gate {
  /** Throws GateError, and the errors of `prepareHop` and `mayLeave`. */
  send(request: GateRequest, policy: GatePolicy, signal: AbortSignal): Promise<GateResponse>;
  /**
   * A gate with separate connections that present a client certificate; no other request shares them. The caller must close it.
   */
  present(certificate: ClientCertificate): Gate;
  /** Opens a proxy on loopback, whose connections follow the same rules, for a program that can't use `send`. The caller must close it. */
  openProxy(policy: ProxyPolicy): Promise<GateProxy>;
  /** Closes all connections at once. */
  close(): Promise<void>;
}

export interface GateOptions {
  /** Items of LATCHKEY_EGRESS_ALLOW, as returned by `parseEgressAllow`. */
  readonly allow: readonly string[];
  /** How names are resolved; default: the system's resolver. The results are checked in any case. */
  readonly resolve?: Resolve | undefined;
}

const HEADER_BYTES_MAX = 65_536;
const CONNECTIONS_MAX = 128;
/** A redirect's body is read up to this size to keep the connection; for a longer one, the connection is closed. */
const DISCARDED_BYTES_MAX = 65_536;
const SMALL_BYTES_MAX = 65_536;

const DEFAULT_HEADERS: readonly Header[] = [
  ["accept", "*/*"],
  ["accept-encoding", ACCEPTED_ENCODINGS],
  ["user-agent", "Latchkey"],
];

export function openGate({ allow, resolve = resolveBySystem }: GateOptions): Gate {
  return gateOver(addressRules(allow), resolve, null);
}

function gateOver(rules: AddressRules, resolve: Resolve, certificate: ClientCertificate | null): Gate {
  const agent = new Agent({
    // One connector per origin: the rules depend on host and port, and a TLS session is never offered to another host.
    factory: (origin, options) =>
      new Pool(origin, {
        ...(options as Pool.Options),
        connect: checkedConnect(new URL(origin), rules, resolve, certificate),
      }),
    allowH2: false,
    connections: CONNECTIONS_MAX,
    pipelining: 1,
    maxHeaderSize: HEADER_BYTES_MAX,
    // The deadline covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    async send(request, policy, signal) {
      const deadline = startDeadline(signal, policy.timeoutMs);
      try {
        const response = await follow(agent, request, policy, deadline);
        metrics.outboundRequests.add({ result: "answered" });
        return response;
      } catch (error) {
        metrics.outboundRequests.add({ result: error instanceof GateError ? error.failure : "failed" });
        throw error;
      } finally {
        deadline.end();
      }
    },
    present: (other) => gateOver(rules, resolve, other),
    openProxy: async (policy) =>
      await openGateProxy((origin) => checkedConnect(origin, rules, resolve, null), policy),
    close: () => agent.destroy(),
  };
}

async function follow(
  agent: Agent,
  request: GateRequest,
  policy: GatePolicy,
  deadline: Deadline,
): Promise<GateResponse> {
  let hop: Hop = {
    method: request.method,
    url: new URL(request.url),
    headers: request.headers,
    body: request.body,
  };
  const { origin } = hop.url;
  checkOrigin(hop.url, policy, null);
  // Only now, because its message names the host, which is known to be allowed at this point.
  checkMethod(request);
  for (let followed = 0; ; followed++) {
    const { url } = hop;
    const sameOriginAsFirst = url.origin === origin;
    const added = (await policy.prepareHop?.(url, { sameOriginAsFirst, method: hop.method })) ?? [];
    const sent = { ...hop, url: policy.prepareUrl?.(url, { sameOriginAsFirst }) ?? url };
    assert(sent.url.origin === url.origin, "a hop keeps the origin that was checked");
    await failpoint("gate.before_hop");
    const answer = await dispatch(agent, sent, added, policy, deadline).catch((error: unknown) => {
      throw followed > 0 && error instanceof GateError ? afterRedirect(error) : error;
    });
    const setCookie = answer.headers["set-cookie"] ?? [];
    policy.absorb?.(url, typeof setCookie === "string" ? [setCookie] : setCookie);
    try {
      const target =
        policy.redirectsMax === 0 ? null : redirectTarget(answer.statusCode, answer.headers["location"], url);
      if (target === null)
        return { ...(await readResponse(answer, url, policy, deadline)), isRedirected: followed > 0 };
      if (followed >= policy.redirectsMax)
        throw new GateError(
          "redirect_outside",
          `${url.host} redirected more than ${policy.redirectsMax} times`,
        );
      checkOrigin(target, policy, url);
      hop = nextHop(hop, answer.statusCode, target, added);
      await answer.body
        .dump({ limit: DISCARDED_BYTES_MAX, signal: deadline.signal })
        .catch((error: unknown) => {
          throw gateError(error, url.host, policy, deadline);
        });
    } catch (error) {
      answer.body.on("error", () => undefined).destroy();
      throw error;
    }
  }
}

/** The hop before it was sent, so an error that means "nothing was sent" no longer fits. */
function afterRedirect(error: GateError): GateError {
  if (error.failure === "unreachable") return new GateError("connection", error.message);
  return error.failure === "refused" ? new GateError("redirect_outside", error.message) : error;
}

/** The URL that is checked is the one that is used: the origin comes from the same object, never from a copy (docs/decisions/0015). */
function checkOrigin(url: URL, policy: GatePolicy, redirectedFrom: URL | null): void {
  // A first URL may be built from data, and in a login from a secret, so it is not quoted.
  const refuse = (reason: string): GateError =>
    redirectedFrom === null
      ? new GateError("refused", `the request was refused: ${reason}`)
      : new GateError(
          "redirect_outside",
          `${redirectedFrom.host} redirected to ${url.host || "another scheme"}: ${reason}`,
        );
  // A `blob:` URL has the origin of the URL in it.
  if (url.protocol !== "https:" && url.protocol !== "http:") throw refuse("only http and https are allowed");
  if (url.username !== "" || url.password !== "")
    throw refuse("a URL must not contain a user name or a password");
  if (policy.origins.includes(url.origin)) return;
  const what = redirectedFrom === null ? "its origin" : url.origin;
  throw refuse(`${what} is not one of the allowed hosts (${policy.origins.join(", ")})`);
}

function checkMethod({ method, url }: GateRequest): void {
  if (!/^[A-Z]{1,32}$/.test(method) || ["CONNECT", "TRACE", "TRACK"].includes(method)) {
    throw new GateError("refused", `the request to ${url.host} has a method that is not supported`);
  }
}

async function dispatch(
  agent: Agent,
  hop: Hop,
  added: readonly Header[],
  policy: GatePolicy,
  deadline: Deadline,
): Promise<Dispatcher.ResponseData> {
  const { url, method, body } = hop;
  const headers = headersOf(hop.headers, added, DEFAULT_HEADERS, url.host).flat();
  const isStream = body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array);
  if (isStream) headers.push("content-length", String(body.sizeBytes));
  const content = isStream ? watchFailure(body.open()) : null;
  let refusal: { readonly error: unknown } | null = null;
  const ask = (): void => {
    try {
      policy.mayLeave?.();
    } catch (error) {
      refusal = { error };
      throw error;
    }
  };
  const guarded = policy.mayLeave === undefined ? agent : agent.compose(askBeforeFirstByte(ask));
  try {
    // Otherwise the library would still connect.
    deadline.signal.throwIfAborted();
    return await guarded.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      headers,
      body:
        content === null
          ? ((body as string | Uint8Array | undefined) ?? null)
          : Readable.from(content.chunks, { objectMode: false }),
      signal: deadline.signal,
    });
  } catch (error) {
    if (refusal !== null) throw (refusal as { readonly error: unknown }).error;
    // The error comes from the storage of the body, not from the other side.
    if (content !== null && content.failure !== null && deadline.failure === null) throw content.failure;
    throw gateError(error, url.host, policy, deadline);
  }
}

async function readResponse(
  answer: Dispatcher.ResponseData,
  url: URL,
  policy: GatePolicy,
  deadline: Deadline,
): Promise<Omit<GateResponse, "isRedirected">> {
  const headers = new Map<string, string>();
  for (const [name, value] of Object.entries(answer.headers)) {
    if (name !== "set-cookie" && value !== undefined)
      headers.set(name, typeof value === "string" ? value : value.join(", "));
  }
  const coding = readCoding(headers.get("content-encoding") ?? "", url.host);
  // Leaving the body before its end destroys it, which it reports as an error of its own.
  if (policy.cutsBody === true) answer.body.on("error", () => undefined);
  const content = watchFailure(readBody(answer.body, coding, policy, url.host));
  try {
    const kept = policy.keep ? await storeBody(content.chunks, policy.keep) : null;
    const body =
      kept !== null
        ? new Uint8Array()
        : coding === null && isDeclaredSmall(headers, policy)
          ? await answer.body.bytes()
          : await wholeBody(content.chunks);
    return {
      status: answer.statusCode,
      url: url.href,
      headers,
      body,
      kept,
      text: () => decodeText(body, headers.get("content-type")),
    };
  } catch (error) {
    // The error comes from the storage of the body.
    if (policy.keep && content.failure === null && deadline.failure === null) throw error;
    throw gateError(error, url.host, policy, deadline);
  }
}

/** Whether HTTP itself limits the body to few bytes: then they are collected without streams, which cost more than the rest of the answer. */
function isDeclaredSmall(headers: ReadonlyMap<string, string>, { maxBytes }: GatePolicy): boolean {
  const length = headers.get("content-length") ?? "";
  return (
    /^\d{1,9}$/.test(length) &&
    Number(length) <= Math.min(SMALL_BYTES_MAX, maxBytes) &&
    !headers.has("transfer-encoding")
  );
}

interface WatchedChunks {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** The error that ended the bytes, if any. */
  readonly failure: Error | null;
}

/** Distinguishes a failure of the source from one of the consumer. */
function watchFailure(bytes: AsyncIterable<Uint8Array>): WatchedChunks {
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

async function storeBody(chunks: AsyncIterable<Uint8Array>, keep: KeepBody): Promise<KeptBody> {
  let sizeBytes = 0;
  const open = await keep(
    (async function* () {
      for await (const chunk of chunks) {
        sizeBytes += chunk.length;
        yield chunk;
      }
    })(),
  );
  return { sizeBytes, open };
}

/** Describes a failure without the messages and causes of the network libraries, because these quote requests. */
function gateError(error: unknown, host: string, policy: GatePolicy, deadline: Deadline): GateError {
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
