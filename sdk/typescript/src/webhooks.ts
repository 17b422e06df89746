import type { WebhookEvent } from "./api-types.ts";
import { WebhookVerificationError } from "./errors.ts";

export interface VerifyOptions {
  /** How far the timestamp may be from the time of this machine. Default: 300. */
  readonly toleranceSeconds?: number | undefined;
}

/** The headers of a request, as frameworks have them: `Headers`, or an object with names in lower case. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

const PREFIX = "whsec_";
const TOLERANCE_SECONDS = 300;

/**
 * Verifies a webhook by Standard Webhooks and returns its event. `body`: the request's body as it came, before it is parsed. `secret`: of the
 * endpoint, `whsec_…`. The same event may come more than once, with the same `webhook-id`. Throws WebhookVerificationError.
 */
export async function verify(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
  { toleranceSeconds = TOLERANCE_SECONDS }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) =>
    readHeader(headers, name),
  ) as [string, string, string];
  const awaySeconds = Math.abs(Date.now() / 1_000 - Number(timestamp));
  if (!/^\d{1,12}$/.test(timestamp) || !(awaySeconds <= toleranceSeconds))
    throw new WebhookVerificationError("The webhook's timestamp is too far from the current time");
  const key = await importKey(secret);
  const text = typeof body === "string" ? body : new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  for (const signature of signatures.split(" ")) {
    const [version, value = ""] = signature.split(",");
    const bytes = version === "v1" ? decodeBase64(value) : null;
    // Compares in constant time.
    if (bytes && (await crypto.subtle.verify("HMAC", key, bytes, signed)))
      return JSON.parse(text) as WebhookEvent;
  }
  throw new WebhookVerificationError("The webhook has no signature by this secret");
}

function readHeader(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value === "string" && value !== "") return value;
  throw new WebhookVerificationError(`The webhook has no header ${name}`);
}

/** A CryptoKey, whose name differs between runtimes' types. */
type Key = Parameters<typeof crypto.subtle.verify>[1];

async function importKey(secret: string): Promise<Key> {
  const bytes = secret.startsWith(PREFIX) ? decodeBase64(secret.slice(PREFIX.length)) : null;
  if (!bytes || bytes.length === 0)
    throw new WebhookVerificationError("The secret must be that of the endpoint: whsec_…");
  return await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

/** null: it is not Base64. */
function decodeBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}
