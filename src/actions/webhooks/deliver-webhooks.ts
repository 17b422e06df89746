import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  claimDeliveries,
  noteEndpointHealth,
  recordAttempts,
  type AttemptRecord,
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
import { isDelivered, nextAttemptInMs, renderEvent, type DisabledReason } from "#domain/webhook.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import type { Clock } from "#lib/clock.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError, type Log } from "#lib/log.ts";
import type { Random } from "#lib/random.ts";
import { retryAfterMs } from "#lib/retry-delay.ts";
import { webhookHeaders } from "#lib/webhook-signature.ts";
import { GateError } from "#outbound/gate-error.ts";
import type { Gate, GateResponse } from "#outbound/gate.ts";
import { webhookSecretBinding } from "#vault/binding.ts";
import type { Vault } from "#vault/vault.ts";

/** What delivering needs. */
export interface DeliveryServices {
  readonly db: Database;
  readonly vault: Vault;
  readonly gate: Gate;
  readonly audit: AuditKeys;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Where operators' events link to. */
  readonly publicUrl: () => string;
}

/** Concurrent deliveries to an endpoint. */
const TOGETHER_MAX = 10;
/** After this time an endpoint makes room for others, and gets another job if it has more. */
const JOB_MS = 10_000;
/** The next attempt of a delivery whose worker was lost. */
const LEASE_MS = 4 * limits.webhookTimeoutMs;

/**
 * Delivers the due events of an endpoint, several at a time; one at a time while it fails. Each is delivered at least once, always under
 * the same `webhook-id`. Ends when nothing is due, on a failure, or after a while.
 */
export async function deliverWebhooks(
  services: DeliveryServices,
  endpointId: string,
  stopped: AbortSignal,
): Promise<void> {
  const { db, clock } = services;
  const endsAtMs = clock.now() + JOB_MS;
  while (!stopped.aborted && clock.now() < endsAtMs) {
    const endpoint = await findWebhookEndpoint(db, endpointId);
    if (endpoint === undefined || endpoint.disabledAt !== null) return;
    const together = endpoint.failingSince === null ? TOGETHER_MAX : 1;
    // First, so that without the key no attempt is counted.
    const secrets = await openSecrets(services, endpoint);
    const deliveries = await claimDeliveries(db, endpointId, together, LEASE_MS);
    if (deliveries.length === 0) return;
    const attempts = await Promise.all(
      deliveries.map(async (delivery) => await attempt(services, endpoint, secrets, delivery, stopped)),
    );
    await failpoint("webhook.after_send");
    await recordAttempts(db, endpointId, attempts);
    if (!(await noteHealth(services, endpoint, attempts))) return;
  }
}

async function openSecrets(
  { db, vault }: DeliveryServices,
  { id, accountId }: StoredEndpoint,
): Promise<readonly string[]> {
  const stored = await listWebhookSecrets(db, id);
  return await Promise.all(
    stored.map(async (secret) => {
      const plain = await vault.open(secret.sealed, webhookSecretBinding(accountId, secret.id, id));
      const text = Buffer.from(plain).toString("utf8");
      plain.fill(0);
      return text;
    }),
  );
}

/** `isOwnFault`: it ended here, because the service stops or could not make the request, and says nothing of the endpoint. */
type Attempt = AttemptRecord & { readonly isOwnFault: boolean };

async function attempt(
  services: DeliveryServices,
  endpoint: StoredEndpoint,
  secrets: readonly string[],
  delivery: ClaimedDelivery,
  stopped: AbortSignal,
): Promise<Attempt> {
  const beganAtMs = services.clock.now();
  const sent = await renderAndSend(services, endpoint, secrets, delivery, stopped);
  const answered = typeof sent === "string" || sent instanceof GateError ? null : sent;
  const isStopped = answered === null && stopped.aborted;
  const status = answered?.status ?? null;
  const result = { status, retryAfterMs: answered && retryAfterMs(answered.headers) };
  const delivered = isDelivered(result);
  const random = services.random.integer(0, RANDOM_STEPS) / RANDOM_STEPS;
  return {
    eventId: delivery.id,
    attempt: delivery.attempt,
    beganAt: delivery.beganAt,
    durationMs: Math.round(services.clock.now() - beganAtMs),
    status,
    failure: typeof sent === "string" ? sent : failureOf(sent),
    answer: answered === null ? "" : beginningOf(answered),
    isDelivered: delivered,
    nextInMs: delivered ? null : isStopped ? 0 : nextAttemptInMs(delivery.tries, result, random),
    isOwnFault: isStopped || typeof sent === "string",
  };
}

const failureOf = (sent: GateResponse | GateError): string | null =>
  sent instanceof GateError ? sent.message.slice(0, FAILURE_CHARACTERS_MAX) : null;

/** The answer, or why there is none; a text: the service's own fault. An event that can't be sent must not keep the others back. */
async function renderAndSend(
  { gate, log, publicUrl }: DeliveryServices,
  { id: endpointId, url }: StoredEndpoint,
  secrets: readonly string[],
  delivery: ClaimedDelivery,
  stopped: AbortSignal,
): Promise<GateResponse | GateError | string> {
  try {
    const body = renderEvent(delivery, publicUrl());
    await failpoint("webhook.before_send");
    return await send(gate, url, delivery, body, secrets, stopped);
  } catch (error) {
    log.error(
      { ...describeError(error), endpointId, eventId: delivery.id, type: delivery.type },
      "an event could not be sent to its webhook endpoint",
    );
    const name = error instanceof Error ? error.name : "unknown";
    return `an error of Latchkey kept the event from being sent (${name}): see the log of the service`;
  }
}

const RANDOM_STEPS = 1_000;
/** The same as in the table's CHECK. */
const FAILURE_CHARACTERS_MAX = 300;

async function send(
  gate: Gate,
  target: string,
  delivery: ClaimedDelivery,
  body: string,
  secrets: readonly string[],
  stopped: AbortSignal,
): Promise<GateResponse | GateError> {
  const url = new URL(target);
  const signed = webhookHeaders({ id: delivery.id, atMs: delivery.beganAt.getTime(), body }, secrets);
  try {
    return await gate.send(
      {
        method: "POST",
        url,
        headers: [["content-type", "application/json"], ["user-agent", "Latchkey-Webhooks"], ...signed],
        body,
      },
      {
        origins: [url.origin],
        // A redirect is a failure like any other status.
        redirectsMax: 0,
        maxBytes: limits.webhookAnswerBytesMax,
        cutsBody: true,
        timeoutMs: limits.webhookTimeoutMs,
      },
      stopped,
    );
  } catch (error) {
    if (error instanceof GateError) return error;
    throw error;
  }
}

/** Without control characters, which a log must not show and a database can't store. */
function beginningOf(answer: GateResponse): string {
  const text = answer.text().slice(0, limits.webhookAnswerCharactersKept);
  return text.replaceAll(/\p{Cc}/gu, " ").toWellFormed();
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
