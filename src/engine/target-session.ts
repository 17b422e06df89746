import {
  OutboundError,
  type OutboundRequest,
  type OutboundResponse,
  type SendOutbound,
} from "#domain/http-exchange.ts";
import { limits } from "#domain/limits.ts";
import type { Secret } from "#lib/secret.ts";
import type { Gate } from "#outbound/gate.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import {
  type SessionQuery,
  withoutSessionQuery,
  withoutSessionQueryHeaders,
  withSessionQuery,
} from "./session-query.ts";
import { openJar, type SessionJar } from "#strategies/session-jar.ts";
import type { BeforeHop } from "./record-use.ts";

/** A way to one target: its origins, and what a login gave (nothing for a node without a credential). */
export interface TargetSession {
  readonly send: SendOutbound;
  readonly jar: SessionJar;
  /** Closes connections that belong to this session alone. */
  close(): Promise<void>;
}

/**
 * Binds requests to a set of origins. Secrets are added here, behind the caller's back, to requests that the gate has
 * accepted for one of these origins: cookies by the jar's own rules, the login's headers and query parameters to the origin of
 * the request only, its certificate to whoever of them asks for one. Of a target with a credential
 * `beforeHop` records each hop before it is made. `learn` is told the values of cookies before anybody sees the response.
 */
export function openTarget(
  gate: Gate,
  origins: readonly string[],
  login: Secret<LoginSession> | null,
  jar: SessionJar = openJar(login?.reveal().cookies ?? undefined),
  beforeHop: BeforeHop | null = null,
  learn: ((cookies: readonly string[]) => void) | null = null,
): TargetSession {
  const { query = [], certificate } = login?.reveal() ?? {};
  const own = certificate === undefined ? null : gate.present(certificate);
  const send: SendOutbound = async (request, signal, keep) => {
    const url = absoluteUrl(request, origins);
    const response = await (own ?? gate).send(
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
        prepareHop: async (hop, { sameOriginAsFirst }) => {
          await beforeHop?.(hop);
          return hopHeaders(hop, sameOriginAsFirst, login, jar);
        },
        prepareUrl: (hop, { sameOriginAsFirst }) => hopUrl(hop, sameOriginAsFirst, query),
        absorb: (hop, setCookies) => {
          const values = jar.absorb(hop, setCookies);
          if (values.length > 0) learn?.(values);
        },
        keep: request.toFile === true ? (keep ?? null) : null,
      },
      signal,
    );
    if (jar.overflow !== null) throw new OutboundError("refused", jar.overflow);
    if (query.length === 0) return response;
    return {
      ...response,
      url: withoutSessionQuery(response.url, query),
      headers: withoutSessionQueryHeaders(response.headers, query),
    };
  };
  return {
    send: async (request, signal, keep) => await mapGateErrors(send(request, signal, keep)),
    jar,
    close: async () => await own?.close(),
  };
}

/** What the first origin repeats of our parameters in a redirect stays there. */
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

/** Design, page 3: a relative URL is resolved against the first of the hosts. */
export function absoluteUrl(request: OutboundRequest, origins: readonly string[]): URL {
  if (!URL.canParse(request.url, origins[0]))
    throw new OutboundError("refused", "the request's URL is not a URL");
  const url = new URL(request.url, origins[0]);
  for (const [name, value] of request.query ?? []) url.searchParams.append(name, value);
  return url;
}

/** The gate's errors in the words of the domain: it lives below it and can't know them. */
async function mapGateErrors(response: Promise<OutboundResponse>): Promise<OutboundResponse> {
  try {
    return await response;
  } catch (error) {
    const { failure, message } = error as { failure?: OutboundError["failure"]; message: string };
    if (failure === undefined || error instanceof OutboundError) throw error;
    throw new OutboundError(failure, message);
  }
}
