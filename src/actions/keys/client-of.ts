import { findClientAddress, type Network, type ProxyHeaders } from "#domain/client-address.ts";
import type { Log } from "#lib/log.ts";

/** The client address of a request, according to the trusted proxies. */
export type ClientOf = (request: {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: ProxyHeaders;
}) => string;

/** Determines the client's address. Headers of untrusted peers are ignored; a suspected proxy is logged once. */
export function openClientOf(trusted: readonly Network[], log: Log): ClientOf {
  let isTold = trusted.length > 0;
  return ({ socket, headers }) => {
    if (!isTold && (headers["x-forwarded-for"] ?? headers.forwarded) !== undefined) {
      isTold = true;
      log.warn(
        {},
        "requests come with X-Forwarded-For or Forwarded, and LATCHKEY_TRUSTED_PROXIES is empty: if that is your proxy, list it " +
          "there, otherwise all its clients count as one address (docs/reverse-proxy.md)",
      );
    }
    return findClientAddress(socket.remoteAddress, headers, trusted);
  };
}
