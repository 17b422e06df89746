import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  claimDeliveries,
  noteEndpointHealth,
  recordAttempts,
  returnDeliveries,
  type ClaimedDelivery,
} from "#db/webhooks/webhook-deliveries.ts";
import {
  disableWebhookEndpoint,
  findWebhookEndpoint,
  listWebhookSecrets,
  noteEndpointDisabled,
  type StoredEndpoint,
} from "#db/webhooks/webhook-endpoints.ts";
import { limits } from "#domain/limits.ts";
import type { DisabledReason } from "#domain/webhook.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { Hmac } from "#lib/hmac.ts";
import { inLanes } from "#lib/lanes.ts";
import { openWebhookSigner } from "#lib/webhook-signature.ts";
import { webhookSecretBinding } from "#vault/binding.ts";
import type { Vault } from "#vault/vault.ts";
import { attemptDelivery, type Attempt, type AttemptServices } from "./attempt-delivery.ts";

/** What delivering needs. */
export interface DeliveryServices extends AttemptServices {
  readonly db: Database;
  readonly vault: Vault;
  readonly audit: AuditKeys;
}

/** Concurrent deliveries to an endpoint. */
const TOGETHER_MAX = 10;
/** Deliveries that are claimed, and recorded, by one statement. */
const BATCH_MAX = 100;
/** What a lost worker has sent without recording it is sent again, so a batch is not larger than the endpoint takes in about this time. */
const BATCH_MS = 1_000;
/** After this time an endpoint makes room for others, and gets another job if it has more. */
const JOB_MS = 10_000;
/** The next attempt of a delivery whose worker was lost. */
const LEASE_MS = 4 * limits.webhookTimeoutMs;

/**
 * Delivers the due events of an endpoint, several at a time; one at a time while it fails. Each is delivered at least once, always under
 * the same `webhook-id`. Ends when nothing else is due, on a failure, or after a while: what comes next is found by the next look for due
 * events, together with what comes until then.
 */
export async function deliverWebhooks(
  services: DeliveryServices,
  endpointId: string,
  stopped: AbortSignal,
): Promise<void> {
  const { db, clock } = services;
  const endsAtMs = clock.now() + JOB_MS;
  const isOver = (): boolean => stopped.aborted || clock.now() >= endsAtMs;
  const opened = new Map<string, Hmac>();
  let batchMax = TOGETHER_MAX;
  while (!isOver()) {
    const endpoint = await findWebhookEndpoint(db, endpointId);
    if (endpoint === undefined || endpoint.disabledAt !== null) return;
    // First, so that without the key no attempt is counted.
    const signers = await openSigners(services, endpoint, opened);
    const claimMax = endpoint.failingSince === null ? batchMax : 1;
    const deliveries = await claimDeliveries(db, endpointId, claimMax, LEASE_MS);
    if (deliveries.length === 0) return;
    const beganAtMs = clock.now();
    const attempts = await attemptAll(services, endpoint, signers, deliveries, isOver, stopped);
    const isQuick = clock.now() - beganAtMs < BATCH_MS && attempts.every(({ isDelivered }) => isDelivered);
    batchMax = isQuick ? Math.min(2 * batchMax, BATCH_MAX) : TOGETHER_MAX;
    if (!(await noteHealth(services, endpoint, attempts)) || deliveries.length < claimMax) return;
  }
}

/** Attempts them until one fails, and records what became of each. */
async function attemptAll(
  services: DeliveryServices,
  endpoint: StoredEndpoint,
  signers: readonly Hmac[],
  deliveries: readonly ClaimedDelivery[],
  isOver: () => boolean,
  stopped: AbortSignal,
): Promise<readonly Attempt[]> {
  const { db } = services;
  let fails = false;
  const attempts = await inLanes(
    deliveries,
    TOGETHER_MAX,
    async (delivery) => {
      const attempt = await attemptDelivery(services, endpoint, signers, delivery, stopped);
      fails ||= !attempt.isDelivered && !attempt.isOwnFault;
      return attempt;
    },
    () => fails || isOver(),
  );
  await failpoint("webhook.after_send");
  await recordAttempts(db, endpoint.id, attempts);
  if (attempts.length < deliveries.length)
    await returnDeliveries(db, endpoint.id, deliveries.slice(attempts.length));
  return attempts;
}

/** By the endpoint's secrets, the current one first. `opened`: those of earlier batches, by the ids of their secrets. */
async function openSigners(
  { db, vault }: DeliveryServices,
  { id, accountId }: StoredEndpoint,
  opened: Map<string, Hmac>,
): Promise<readonly Hmac[]> {
  const stored = await listWebhookSecrets(db, id);
  return await Promise.all(
    stored.map(async (secret) => {
      const known = opened.get(secret.id);
      if (known !== undefined) return known;
      const plain = await vault.open(secret.sealed, webhookSecretBinding(accountId, secret.id, id));
      const signer = openWebhookSigner(Buffer.from(plain).toString("utf8"));
      plain.fill(0);
      opened.set(secret.id, signer);
      return signer;
    }),
  );
}

/** Whether the endpoint works and may get more. Disables one that is gone, or has failed for days. */
async function noteHealth(
  services: DeliveryServices,
  endpoint: StoredEndpoint,
  attempts: readonly Attempt[],
): Promise<boolean> {
  const { db } = services;
  const counted = attempts.filter(({ isOwnFault }) => !isOwnFault);
  if (counted.length === 0) return true;
  if (counted.some(({ status }) => status === GONE)) {
    await disable(services, endpoint, "gone");
    return false;
  }
  const works = counted.some(({ isDelivered: delivered }) => delivered);
  if (works && endpoint.failingSince === null) return true;
  const failingMs = await noteEndpointHealth(db, endpoint.id, works);
  if (failingMs !== null && failingMs > limits.webhookFailingMsMax)
    await disable(services, endpoint, "failing");
  return works;
}

/** RFC 9110, 15.5.11: the condition is likely permanent. */
const GONE = 410;

async function disable(
  { db, audit, log }: DeliveryServices,
  endpoint: StoredEndpoint,
  reason: DisabledReason,
): Promise<void> {
  const isDisabled = await db.transaction(async (tx) => {
    if (!(await disableWebhookEndpoint(tx, endpoint.id, reason))) return false;
    await noteEndpointDisabled(tx, endpoint, reason);
    await recordAudit(tx, audit, {
      accountId: endpoint.accountId,
      actor: { kind: "service" },
      action: "webhook.disable",
      subjectId: endpoint.id,
      detail: { reason },
    });
    return true;
  });
  if (isDisabled)
    log.error(
      { alarm: "webhook_disabled", endpointId: endpoint.id, account: endpoint.account, reason },
      "a webhook endpoint was disabled: its events are no longer delivered. Enable it when it works again",
    );
}
