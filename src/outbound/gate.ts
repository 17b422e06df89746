import type { Server } from "node:net";
import { Readable } from "node:stream";
import { Agent, Pool } from "undici";
import { isTestTarget } from "#domain/test-mode.ts";
import { assert } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { metrics } from "#lib/metrics.ts";
import { addressRules, type AddressRules } from "./address-rules.ts";
import { checkedConnect, resolveBySystem, type ClientCertificate, type Resolve } from "./checked-connect.ts";
import { dispatch, gateError, HEADER_BYTES_MAX, watchFailure, type Way } from "./dispatch.ts";
import { Deadline } from "./deadline.ts";
import { GateError } from "./gate-error.ts";
import { openGateProxy, type GateProxy, type ProxyPolicy } from "./gate-proxy.ts";
import { decodeText, readBody, readCoding, wholeBody, type Coding } from "./read-body.ts";
import { nextHop, redirectTarget, type Body, type Hop } from "./redirect.ts";
import type { Header } from "./request-headers.ts";
import { connectTestTarget } from "./test-target.ts";
import { askThrough, type Answer } from "./whole-answer.ts";

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
  openProxy(policy: ProxyPolicy, listener?: Server): Promise<GateProxy>;
  /** Closes all connections at once. */
  close(): Promise<void>;
}

export interface GateOptions {
  /** Items of LATCHKEY_EGRESS_ALLOW, as returned by `parseEgressAllow`. */
  readonly allow: readonly string[];
  /** Whether targets get the `traceparent` of a request's span. */
  readonly tellsTraces?: boolean;
  /** How names are resolved; default: the system's resolver. The results are checked in any case. */
  readonly resolve?: Resolve | undefined;
}

const CONNECTIONS_MAX = 128;
/** A redirect's body is read up to this size to keep the connection; for a longer one, the connection is closed. */
const DISCARDED_BYTES_MAX = 65_536;

export function openGate({ allow, resolve = resolveBySystem, tellsTraces = false }: GateOptions): Gate {
  return gateOver({ rules: addressRules(allow), resolve, tellsTraces }, null);
}

interface GateRules {
  readonly rules: AddressRules;
  readonly resolve: Resolve;
  readonly tellsTraces: boolean;
}

function gateOver(own: GateRules, certificate: ClientCertificate | null): Gate {
  const { rules, resolve, tellsTraces } = own;
  const agent = new Agent({
    // One connector per origin: the rules depend on host and port, and a TLS session is never offered to another host.
    factory: (origin, options) =>
      new Pool(origin, {
        ...(options as Pool.Options),
        connect: isTestTarget(new URL(origin))
          ? connectTestTarget
          : checkedConnect(new URL(origin), rules, resolve, certificate),
      }),
    allowH2: false,
    connections: CONNECTIONS_MAX,
    pipelining: 1,
    maxHeaderSize: HEADER_BYTES_MAX,
    // The deadline covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const way = { ask: askThrough(agent), tellsTraces };
  return {
    async send(request, policy, signal) {
      const deadline = new Deadline(signal, policy.timeoutMs);
      try {
        const response = await follow(way, request, policy, deadline);
        metrics.outboundRequests.add({ result: "answered" });
        return response;
      } catch (error) {
        metrics.outboundRequests.add({ result: error instanceof GateError ? error.failure : "failed" });
        throw error;
      } finally {
        deadline.end();
      }
    },
    present: (other) => gateOver(own, other),
    openProxy: async (policy, listener) =>
      await openGateProxy((origin) => checkedConnect(origin, rules, resolve, null), policy, listener),
    close: () => agent.destroy(),
  };
}

async function follow(
  way: Way,
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
    const answer = await dispatch(way, sent, added, policy, deadline).catch((error: unknown) => {
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
      if (answer.body instanceof Readable)
        await discard(answer.body).catch((error: unknown) => {
          throw gateError(error, url.host, policy, deadline);
        });
    } catch (error) {
      if (answer.body instanceof Readable) answer.body.destroy();
      throw error;
    }
  }
}

/** Leaving the loop closes the connection. */
async function discard(body: Readable): Promise<void> {
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>)
    if ((bytes += chunk.length) > DISCARDED_BYTES_MAX) return;
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

async function readResponse(
  answer: Answer,
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
  const { body, kept } =
    coding === null && answer.body instanceof Uint8Array
      ? { body: answer.body, kept: null }
      : await readStream(streamOf(answer.body), coding, url, policy, deadline);
  return {
    status: answer.statusCode,
    url: url.href,
    headers,
    body,
    kept,
    text: () => decodeText(body, headers.get("content-type")),
  };
}

const streamOf = (body: Answer["body"]): Readable =>
  body instanceof Readable ? body : Readable.from(body.length === 0 ? [] : [body], { objectMode: false });

async function readStream(
  stream: Readable,
  coding: Coding,
  url: URL,
  policy: GatePolicy,
  deadline: Deadline,
): Promise<Pick<GateResponse, "body" | "kept">> {
  const content = watchFailure(readBody(stream, coding, policy, url.host));
  try {
    if (policy.keep) return { body: new Uint8Array(), kept: await storeBody(content.chunks, policy.keep) };
    return { body: await wholeBody(content.chunks), kept: null };
  } catch (error) {
    // The error comes from the storage of the body.
    if (policy.keep && content.failure === null && deadline.failure === null) throw error;
    throw gateError(error, url.host, policy, deadline);
  }
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
