import {
  OutboundError,
  type KeepBody,
  type OutboundRequest,
  type OutboundResponse,
  type SendOutbound,
} from "#domain/http-exchange.ts";
import { hasDestination } from "#domain/http-methods.ts";
import { limits } from "#domain/limits.ts";
import type { Secret } from "#lib/secret.ts";
import type { Gate } from "#outbound/gate.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import type { StepBrowser } from "#answers/browser/step-browser.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import { browseAs, type BrowseMeans } from "./browse.ts";
import { openDigest, type DigestExchange } from "./digest-session.ts";
import type { BothNets } from "#engine/redaction/both-nets.ts";
import type { Door } from "#engine/redaction/door.ts";
import {
  type SessionQuery,
  withoutSessionQuery,
  withoutSessionQueryHeaders,
  withSessionQuery,
} from "./session-query.ts";
import { openJar, type SessionJar } from "#strategies/http/session-jar.ts";
import type { BeforeHop } from "./record-use.ts";

type SendRest = Parameters<SendOutbound> extends [OutboundRequest, ...infer Rest] ? Rest : never;

/** Access to one target: its origins and the login's session (empty for a node without a credential). */
export interface TargetSession {
  readonly send: SendOutbound;
  /** Of a request's URL; null: it is none. */
  readonly originOf: (url: string) => string | null;
  readonly jar: SessionJar;
  /** Opens a browser that is logged in, and closes it afterwards. Throws StepFailure. */
  browse<T>(signal: AbortSignal, means: PageMeans, work: (browser: StepBrowser) => Promise<T>): Promise<T>;
  /** Closes connections that only this session uses. */
  close(): Promise<void>;
}

/**
 * Restricts requests to a set of origins. Secrets are added here, invisibly to the caller, to requests that the gate has accepted for
 * one of these origins: cookies by the jar's rules, the login's headers and query parameters only for the origin of the request, its
 * certificate for any of them that asks for one. With a credential, `beforeHop` records each hop before it is made. Requests of nodes
 * and all responses pass through `door`; without a door (for logins, which work with secrets) they stay unchanged.
 */
export function openTarget(
  gate: Gate,
  origins: readonly string[],
  login: Secret<LoginSession> | null,
  jar: SessionJar = openJar(login?.reveal().cookies ?? undefined),
  beforeHop: BeforeHop | null = null,
  door: Door | null = null,
  browsing: Browsing | null = null,
): TargetSession {
  const { query = [], certificate, digest } = login?.reveal() ?? {};
  const own = certificate === undefined ? null : gate.present(certificate);
  const prove = digest === undefined ? null : openDigest(digest);
  const way: Way = { gate: own ?? gate, origins, login, jar, beforeHop, door, query };
  const send: SendOutbound = async (asked, ...rest) => {
    const named = absoluteUrl({ url: asked.url }, origins);
    const request = door?.leave(asked, named) ?? asked;
    const url = request === asked ? withQuery(named, asked) : absoluteUrl(request, origins);
    requireDestination(request, url, origins);
    const proof = prove?.(request.method) ?? null;
    let response = await sendOnce(way, request, url, proof, rest);
    while (proof?.mustRepeat(response) === true) response = await sendOnce(way, request, url, proof, rest);
    const given = withoutQuery(response, query);
    return door === null ? given : await door.enter(given);
  };
  return {
    send: async (request, signal, keep, mayLeave) =>
      await mapGateErrors(send(request, signal, keep, mayLeave), door),
    originOf: (url) => URL.parse(url, origins[0])?.origin ?? null,
    jar,
    browse: async (signal, { nets, ...may }, work) => {
      const means = { origins, login, jar, beforeHop, nets: () => nets, ...may };
      if (browsing === null) throw new StepFailure("browser_missing", NO_BROWSER);
      return await browseAs({ ...means, ...browsing }, signal, work);
    },
    close: async () => await own?.close(),
  };
}

/** What a node's pages are opened with. */
export interface PageMeans {
  /** Find the run's secrets in what they show. */
  readonly nets: BothNets;
  /** The most that they may download, in bytes; undefined: nothing. */
  readonly downloadBytesMax?: number | undefined;
  readonly whileWaiting: BrowseMeans["whileWaiting"];
}

/** Where the browsers of nodes come from, and what their pages may load besides the hosts. */
export type Browsing = Pick<BrowseMeans, "browsers" | "resources" | "expired" | "dismissed" | "tape">;

const NO_BROWSER = "this target has no browser";

/** The state that all requests of a session share. */
interface Way {
  readonly gate: Gate;
  readonly origins: readonly string[];
  readonly login: Secret<LoginSession> | null;
  readonly jar: SessionJar;
  readonly beforeHop: BeforeHop | null;
  readonly door: Door | null;
  readonly query: SessionQuery;
}

async function sendOnce(
  { gate, origins, login, jar, beforeHop, door, query }: Way,
  request: OutboundRequest,
  url: URL,
  proof: DigestExchange | null,
  [signal, keep, mayLeave]: SendRest,
): Promise<OutboundResponse> {
  const keeping = request.toFile === true && keep !== undefined ? keepBehind(door, keep, url) : null;
  const response = await gate.send(
    {
      method: request.method,
      url,
      headers: request.headers ?? [],
      ...(request.body === undefined ? {} : { body: request.body }),
    },
    {
      origins,
      redirectsMax: request.redirectsMax ?? 0,
      maxBytes: request.maxBytes ?? limits.responseBytesMax,
      timeoutMs: request.timeoutMs ?? limits.requestTimeoutMs,
      prepareHop: async (hop, { sameOriginAsFirst, method }) => {
        // Another origin than the first was reached by a redirect.
        await beforeHop?.(hop, sameOriginAsFirst).catch((error: unknown) => {
          throw sameOriginAsFirst ? error : afterFirstHop(error);
        });
        const proven = sameOriginAsFirst ? (proof?.authorize(hop, method) ?? null) : null;
        return [
          ...hopHeaders(hop, sameOriginAsFirst, login, jar),
          ...(proven === null ? [] : [["authorization", proven] as const]),
        ];
      },
      prepareUrl: (hop, { sameOriginAsFirst }) => hopUrl(hop, sameOriginAsFirst, query),
      absorb: (hop, setCookies) => {
        keeping?.comesFrom(hop);
        const values = jar.absorb(hop, setCookies);
        if (values.length > 0) door?.learn(values);
      },
      keep: keeping?.keep ?? null,
      ...(mayLeave && { mayLeave }),
    },
    signal,
  );
  // The request was sent, whatever happens to its response.
  if (jar.overflow !== null) throw new OutboundError("unreadable", jar.overflow);
  const kept = response.kept && keeping ? { ...response.kept, sizeBytes: keeping.sizeBytes } : response.kept;
  return { ...response, kept };
}

/** The request itself was already sent: the refusal of this hop says nothing about it. */
const afterFirstHop = (error: unknown): unknown =>
  error instanceof OutboundError && error.failure === "refused"
    ? new OutboundError("redirect_outside", error.message, { cause: error })
    : error;

const withoutQuery = (response: OutboundResponse, query: SessionQuery): OutboundResponse =>
  query.length === 0
    ? response
    : {
        ...response,
        url: withoutSessionQuery(response.url, query),
        headers: withoutSessionQueryHeaders(response.headers, query),
      };

interface Keeping {
  readonly keep: KeepBody;
  /** The size of what was kept. */
  readonly sizeBytes: number;
  /** The last hop is where the body comes from. */
  comesFrom(hop: URL): void;
}

function keepBehind(door: Door | null, keep: KeepBody, first: URL): Keeping {
  let { origin } = first;
  let sizeBytes = 0;
  async function* counted(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of bytes) {
      sizeBytes += chunk.length;
      yield chunk;
    }
  }
  return {
    keep: async (bytes) => await keep(counted(door?.enterFile(bytes, origin) ?? bytes)),
    get sizeBytes() {
      return sizeBytes;
    },
    comesFrom: (hop) => {
      ({ origin } = hop);
    },
  };
}

/** Parameters that the first origin repeats in a redirect stay with that origin. */
function hopUrl(hop: URL, sameOriginAsFirst: boolean, query: SessionQuery): URL {
  if (query.length === 0) return hop;
  return sameOriginAsFirst ? withSessionQuery(hop, query) : new URL(withoutSessionQuery(hop.href, query));
}

function hopHeaders(
  hop: URL,
  sameOriginAsFirst: boolean,
  login: Secret<LoginSession> | null,
  jar: SessionJar,
): readonly (readonly [string, string])[] {
  const headers: [string, string][] = [];
  const cookie = jar.cookieHeader(hop);
  if (cookie) headers.push(["cookie", cookie]);
  if (login && sameOriginAsFirst) headers.push(...Object.entries(login.reveal().headers));
  return headers;
}

/** docs/decisions/0030: a relative URL is resolved against the first of the hosts. */
export function absoluteUrl(
  request: Pick<OutboundRequest, "url" | "query">,
  origins: readonly string[],
): URL {
  const url = URL.parse(request.url, origins[0]);
  if (url === null) throw new OutboundError("refused", "the request's URL is not a URL");
  return withQuery(url, request);
}

function withQuery(url: URL, { query = [] }: Pick<OutboundRequest, "query">): URL {
  for (const [name, value] of query) url.searchParams.append(name, value);
  return url;
}

/** COPY and MOVE make the target send its data on; the destination must be within the hosts as well. */
function requireDestination(
  { method, headers = [] }: OutboundRequest,
  url: URL,
  origins: readonly string[],
): void {
  if (!hasDestination(method)) return;
  for (const [name, value] of headers)
    if (name.toLowerCase() === "destination" && !origins.includes(URL.parse(value, url.href)?.origin ?? ""))
      throw new OutboundError(
        "refused",
        `${url.host}: the header Destination leads out of the allowed hosts (${origins.join(", ")})`,
      );
}

/** Translates the gate's errors into the domain's: the gate is below the domain and can't know them. */
async function mapGateErrors(
  response: Promise<OutboundResponse>,
  door: Door | null,
): Promise<OutboundResponse> {
  try {
    return await response;
  } catch (error) {
    const { failure, message } = error as { failure?: OutboundError["failure"]; message: string };
    if (failure === undefined || error instanceof OutboundError) throw error;
    throw new OutboundError(failure, door?.message(message) ?? message);
  }
}
