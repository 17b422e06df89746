import { isUtf8 } from "node:buffer";
import { GateError } from "./gate-error.ts";
import { mayContainSecret, plainHeaders, withoutBodyHeaders, type Header } from "./request-headers.ts";

/** A request body. A stream is opened again for each hop and must have exactly the declared number of bytes. */
export type Body =
  | string
  | Uint8Array
  | { readonly sizeBytes: number; readonly open: () => AsyncIterable<Uint8Array> };

/** One request of a chain of redirects. */
export interface Hop {
  readonly method: string;
  readonly url: URL;
  readonly headers: readonly Header[];
  readonly body: Body | undefined;
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Where a response redirects to, or null when it does not. */
export function redirectTarget(
  status: number,
  location: string | readonly string[] | undefined,
  from: URL,
): URL | null {
  if (!REDIRECTS.has(status) || location === undefined) return null;
  if (typeof location !== "string")
    throw new GateError("redirect_outside", `${from.host} sent several redirects at once`);
  const bytes = Buffer.from(location, "latin1");
  const text = isUtf8(bytes) ? bytes.toString("utf8") : location;
  if (!URL.canParse(text, from.href))
    throw new GateError("redirect_outside", `${from.host} redirected to something that is not a URL`);
  return new URL(text, from);
}

/**
 * The request that follows a redirect within the allowed origins, as fetch would send it, except that across origins only headers
 * that don't identify the sender are kept. docs/decisions/0015: fetch keeps `x-api-key`, and re-sends the body of a password form
 * on 307.
 */
export function nextHop(hop: Hop, status: number, target: URL, addedByHop: readonly Header[]): Hop {
  const isCrossing = target.origin !== hop.url.origin;
  const becomesGet =
    status === 303 ? !["GET", "HEAD"].includes(hop.method) : status <= 302 && hop.method === "POST";
  const body = becomesGet ? undefined : hop.body;
  if (isCrossing && body !== undefined) {
    throw new GateError(
      "redirect_outside",
      `${hop.url.host} redirected a request with a body to another origin, ${target.host}`,
    );
  }
  if (isCrossing && status >= 307 && mayContainSecret([...hop.headers, ...addedByHop])) {
    throw new GateError(
      "redirect_outside",
      `${hop.url.host} redirected a request with a credential to another origin, ${target.host}`,
    );
  }
  const kept = isCrossing ? plainHeaders(hop.headers) : hop.headers;
  return {
    method: becomesGet ? "GET" : hop.method,
    url: target,
    headers: body === undefined ? withoutBodyHeaders(kept) : kept,
    body,
  };
}
