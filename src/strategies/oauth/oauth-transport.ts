import { allowInsecureRequests, customFetch, type CustomFetchOptions } from "oauth4webapi";
import { limits } from "#domain/limits.ts";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";

/** How the protocol library reaches a server. */
export interface GateOptions {
  readonly [customFetch]: (
    url: string,
    options: CustomFetchOptions<string, URLSearchParams | undefined>,
  ) => Promise<Response>;
  readonly [allowInsecureRequests]: boolean;
}

/**
 * Sends the library's requests through the egress gate. No redirect is followed: it would send the client's secret and the code
 * to another place (docs/decisions/0015).
 */
export function throughGate(
  access: { send(request: OutboundRequest, origins: readonly string[]): Promise<OutboundResponse> },
  origins: readonly string[],
  insecure: boolean,
): GateOptions {
  return {
    [allowInsecureRequests]: insecure,
    [customFetch]: async (url, { method, headers, body }) => {
      const answer = await access.send(
        {
          method,
          url,
          headers: Object.entries(headers),
          body: body?.toString(),
          redirectsMax: 0,
          maxBytes: limits.oauthResponseBytesMax,
          timeoutMs: limits.requestTimeoutMs,
        },
        origins,
      );
      // Responses with these statuses can't have a body, and are not token responses either.
      const isBodyless = [204, 205, 304].includes(answer.status) || answer.status < 200;
      return new Response(isBodyless ? null : Buffer.from(answer.body), {
        status: answer.status < 200 ? 500 : answer.status,
        headers: plainHeaders(answer.headers),
      });
    },
  };
}

/** Only the headers that the library reads. Others may have values that a Headers object rejects. */
function plainHeaders(headers: ReadonlyMap<string, string>): Headers {
  const kept = new Headers();
  for (const name of ["content-type", "www-authenticate"]) {
    const value = headers.get(name);
    if (value !== undefined) kept.set(name, value);
  }
  return kept;
}
