// The signatures of webhooks, against what the reference library of Standard Webhooks (standardwebhooks 1.1.1) makes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { newWebhookSecret, openWebhookSigner, webhookHeaders } from "#lib/webhook-signature.ts";

interface Vector {
  readonly secret: string;
  readonly id: string;
  /** Seconds. */
  readonly timestamp: number;
  readonly body: string;
  readonly signature: string;
}

/** The first is the one of the specification's text. */
const vectors = JSON.parse(
  readFileSync(join(import.meta.dirname, "standard-webhooks.json"), "utf8"),
) as readonly Vector[];

test("the signature is the one that the reference library makes", () => {
  assert.equal(vectors.length, 3);
  for (const { secret, id, timestamp, body, signature } of vectors)
    assert.deepEqual(
      webhookHeaders({ id, atMs: timestamp * 1_000 + 999, body }, [openWebhookSigner(secret)]),
      [
        ["webhook-id", id],
        ["webhook-timestamp", String(timestamp)],
        ["webhook-signature", signature],
      ],
    );
});

test("with two secrets there are two signatures, separated by a space", () => {
  const delivery = { id: "msg_1", atMs: 1_000, body: "{}" };
  const [one, two] = [newWebhookSecret(), newWebhookSecret()];
  const signatureBy = (secrets: readonly string[]): string | undefined =>
    new Map(webhookHeaders(delivery, secrets.map(openWebhookSigner))).get("webhook-signature");
  assert.equal(signatureBy([one, two]), `${signatureBy([one])} ${signatureBy([two])}`);
  assert.notEqual(signatureBy([one]), signatureBy([two]));
});

test("a secret is whsec_ and 32 random bytes", () => {
  const secrets = new Set(Array.from({ length: 100 }, newWebhookSecret));
  assert.equal(secrets.size, 100);
  for (const secret of secrets) {
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.equal(Buffer.from(secret.slice("whsec_".length), "base64").length, 32);
  }
});
