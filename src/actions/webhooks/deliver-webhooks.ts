import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  claimDeliveries,
  noteEndpointHealth,
  recordAttempts,
  type ClaimedDelivery,
  type DeliveryClaim,
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
import { metrics } from "#lib/metrics.ts";
import { openWebhookSigner } from "#lib/webhook-signature.ts";
import { webhookSecretBinding } from "#vault/binding.ts";
import type { Vault } from "#vault/vault.ts";
import { attemptDelivery, type Attempt, type AttemptServices, type Destination } from "./attempt-delivery.ts";

/** What delivering needs. */
export interface DeliveryServices extends AttemptServices {
  readonly db: Database;
  readonly vault: Vault;
  readonly audit: AuditKeys;
}

/** Delivers the due events of one endpoint. */
export interface DeliveryJob {
  readonly endpointId: string;
  readonly stopped: AbortSignal;
  /** Whose claims they are; null: it is no member at the moment. */
  readonly workerId: () => string | null;
  /** For how long an event must have been due, as of now. */
  readonly waitedMs: () => number;
  /** Called with each batch for an endpoint that works: for how long its oldest event has been due. */
  readonly noteAge: (ms: number) => void;
}

/** How many deliveries to an endpoint are claimed and recorded by one statement, and how many of them are sent at once. */
interface Pace {
  readonly batch: number;
  readonly together: number;
}

const FIRST_PACE: Pace = { batch: 10, together: 10 };
/** For an endpoint that has answered a few batches without a failure. */
const PACE_MAX: Pace = { batch: 200, together: 60 };
const FAILING_PACE: Pace = { batch: 1, together: 1 };
/** What a lost worker has sent without recording it is sent again, so a batch is not larger than the endpoint takes in about this time. */
const BATCH_MS = 1_000;
/** After this time an endpoint makes room for others, and gets another job if it has more. */
const JOB_MS = 10_000;
/** The next attempt of a delivery that its worker does not record, although it is alive. */
const LEASE_MS = 4 * limits.webhookTimeoutMs;

/**
 * Delivers the due events of an endpoint, several at a time; one at a time while it fails. Each is delivered at least once, always under
 * the same `webhook-id`. Ends when nothing else is due, on a failure, or after a while: what comes next is found by the next look for due
 * events, together with what comes until then.
 */
export async function deliverWebhooks(services: DeliveryServices, job: DeliveryJob): Promise<void> {
  const { clock } = services;
  const { endpointId, stopped } = job;
  const endsAtMs = clock.now() + JOB_MS;
  const isOver = (): boolean => stopped.aborted || clock.now() >= endsAtMs;
  const opened = new Map<string, Hmac>();
  let pace = FIRST_PACE;
  const prepare = async (): Promise<Batch | null> => {
    return isOver() ? null : await prepareBatch(services, job, opened, pace);
  };
  let batch = await prepare();
  while (batch !== null) {
    const { claim, endpoint } = batch;
    const isFull = claim.deliveries.length === batch.pace.batch;
    const beganAtMs = clock.now();
    // While it works, the next batch is claimed meanwhile.
    const [works, next] = await Promise.all([
      makeBatch(services, batch, isOver, stopped),
      isFull && endpoint.failingSince === null ? prepare() : null,
    ]);
    pace = nextPace(batch.pace, works, clock.now() - beganAtMs);
    if (!works && next !== null) await recordAttempts(services.db, endpointId, next.claim.id, []);
    if (!works || !isFull) return;
    batch = next ?? (await prepare());
  }
}

/** Deliveries that are made together. */
interface Batch {
  readonly endpoint: StoredEndpoint;
  readonly signers: readonly Hmac[];
  readonly claim: DeliveryClaim;
  readonly pace: Pace;
}

/** null: there is nothing to deliver. */
async function prepareBatch(
  services: DeliveryServices,
  { endpointId, workerId, waitedMs, noteAge }: DeliveryJob,
  opened: Map<string, Hmac>,
  paceOfWorking: Pace,
): Promise<Batch | null> {
  const { db } = services;
  const endpoint = await findWebhookEndpoint(db, endpointId);
  if (endpoint === undefined || endpoint.disabledAt !== null) return null;
  // First, so that without the key nothing is claimed.
  const signers = await openSigners(services, endpoint, opened);
  const pace = endpoint.failingSince === null ? paceOfWorking : FAILING_PACE;
  const wanted = {
    deliveriesMax: pace.batch,
    waitedMs: waitedMs(),
    leaseMs: LEASE_MS,
    workerId: workerId(),
  };
  const claim = await claimDeliveries(db, endpointId, wanted);
  if (claim !== null && endpoint.failingSince === null)
    noteAge(Math.max(...claim.deliveries.map(({ dueForMs }) => dueForMs)));
  return claim && { endpoint, signers, claim, pace };
}

/** Whether the endpoint works and may get more. */
async function makeBatch(
  services: DeliveryServices,
  { endpoint, signers, claim, pace }: Batch,
  isOver: () => boolean,
  stopped: AbortSignal,
): Promise<boolean> {
  const destination = { endpointId: endpoint.id, url: new URL(endpoint.url), signers };
  const { deliveries } = claim;
  const attempts = await attemptAll(services, destination, deliveries, pace.together, isOver, stopped);
  await failpoint("webhook.after_send");
  // What was not attempted is due as before.
  await recordAttempts(services.db, endpoint.id, claim.id, attempts);
  return await noteHealth(services, endpoint, attempts);
}

/** Batches become smaller when one takes too long, also if it was the worker that had no time. */
function nextPace({ batch, together }: Pace, works: boolean, tookMs: number): Pace {
  if (!works) return FIRST_PACE;
  if (tookMs >= BATCH_MS)
    return {
      batch: Math.max(Math.floor(batch / 2), FIRST_PACE.batch),
      together: Math.max(together, FIRST_PACE.together),
    };
  return {
    batch: Math.min(2 * Math.max(batch, FIRST_PACE.batch / 2), PACE_MAX.batch),
    together: Math.min(2 * Math.max(together, FIRST_PACE.together / 2), PACE_MAX.together),
  };
}

/** Attempts them until one fails. Those that were not attempted have no result. */
async function attemptAll(
  services: DeliveryServices,
  destination: Destination,
  deliveries: readonly ClaimedDelivery[],
  together: number,
  isOver: () => boolean,
  stopped: AbortSignal,
): Promise<readonly Attempt[]> {
  let fails = false;
  return await inLanes(
    deliveries,
    together,
    async (delivery) => {
      const attempt = await attemptDelivery(services, destination, delivery, stopped);
      metrics.webhookAttempts.add({ result: resultOf(attempt) });
      fails ||= !attempt.isDelivered && !attempt.isOwnFault;
      return attempt;
    },
    () => fails || isOver(),
  );
}

/** As a label of the metrics. */
const resultOf = ({ isDelivered, isOwnFault }: Attempt): string =>
  isDelivered ? "delivered" : isOwnFault ? "stopped" : "failed";

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
