import { randomBytes } from "node:crypto";
import { assert } from "./assert.ts";
import { openHmac, type Hmac } from "./hmac.ts";

/** Standard Webhooks: a secret is `whsec_` and 24 to 64 bytes in Base64. */
const PREFIX = "whsec_";
const SECRET_BYTES = 32;

export const newWebhookSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString("base64");

/** Signs by a secret. To be kept for several deliveries: it costs more than a signature. */
export function openWebhookSigner(secret: string): Hmac {
  assert(secret.startsWith(PREFIX), "a webhook secret has its prefix");
  return openHmac(Buffer.from(secret.slice(PREFIX.length), "base64"));
}

/**
 * The headers of a delivery by Standard Webhooks: `webhook-id`, `webhook-timestamp` (seconds since 1970) and `webhook-signature`, which has one
 * signature by each signer.
 */
export function webhookHeaders(
  delivery: { readonly id: string; readonly atMs: number; readonly body: string },
  signers: readonly Hmac[],
): readonly (readonly [name: string, value: string])[] {
  const timestamp = String(Math.floor(delivery.atMs / 1_000));
  const signed = `${delivery.id}.${timestamp}.${delivery.body}`;
  const signatures = signers.map((sign) => `v1,${sign(signed).toString("base64")}`);
  return [
    ["webhook-id", delivery.id],
    ["webhook-timestamp", timestamp],
    ["webhook-signature", signatures.join(" ")],
  ];
}
