import { randomBytes } from "node:crypto";
import { assert } from "./assert.ts";
import { openHmac } from "./hmac.ts";

/** Standard Webhooks: a secret is `whsec_` and 24 to 64 bytes in Base64. */
const PREFIX = "whsec_";
const SECRET_BYTES = 32;

export const newWebhookSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString("base64");

/**
 * The headers of a delivery by Standard Webhooks: `webhook-id`, `webhook-timestamp` (seconds since 1970) and `webhook-signature`, which has one
 * signature for each secret.
 */
export function webhookHeaders(
  delivery: { readonly id: string; readonly atMs: number; readonly body: string },
  secrets: readonly string[],
): readonly (readonly [name: string, value: string])[] {
  const timestamp = String(Math.floor(delivery.atMs / 1_000));
  const signed = `${delivery.id}.${timestamp}.${delivery.body}`;
  const signatures = secrets.map((secret) => {
    assert(secret.startsWith(PREFIX), "a webhook secret has its prefix");
    const key = Buffer.from(secret.slice(PREFIX.length), "base64");
    return `v1,${openHmac(key)(signed).toString("base64")}`;
  });
  return [
    ["webhook-id", delivery.id],
    ["webhook-timestamp", timestamp],
    ["webhook-signature", signatures.join(" ")],
  ];
}
