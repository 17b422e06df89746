import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { insertPing, resendDelivery, resendFailed } from "#db/webhooks/webhook-deliveries.ts";
import type { StoredEndpoint } from "#db/webhooks/webhook-endpoints.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { Signing } from "#lib/signing.ts";
import { OperatorError } from "#actions/operator-error.ts";
import { requireEndpoint } from "./manage-endpoints.ts";

interface Services {
  readonly db: Database;
  readonly signing: Signing;
}

/** One event, or all whose delivery was given up since a time (ISO 8601). */
export type WhatToResend = { readonly eventId: string } | { readonly failedSince: string };

/**
 * Sends events to an endpoint again, under their ids, so that its receiver can tell that it has them. Returns how many. Throws
 * OperatorError.
 */
export async function resendWebhooks(
  { db, signing }: Services,
  endpointId: string,
  what: WhatToResend,
  actor: AuditActor = { kind: "cli" },
): Promise<number> {
  const endpoint = await requireEnabled(db, endpointId);
  return await db.transaction(async (tx) => {
    const total = await makeDue(tx, endpointId, what);
    await recordAudit(tx, signing.audit, {
      accountId: endpoint.accountId,
      actor,
      action: "webhook.resend",
      subjectId: endpointId,
      detail: "eventId" in what ? { event: what.eventId } : { since: what.failedSince, events: total },
    });
    return total;
  });
}

async function makeDue(tx: Database, endpointId: string, what: WhatToResend): Promise<number> {
  if ("failedSince" in what) return await resendFailed(tx, endpointId, what.failedSince);
  if (await resendDelivery(tx, endpointId, what.eventId)) return 1;
  throw new OperatorError(
    `The webhook endpoint ${endpointId} has no delivery of the event ${JSON.stringify(what.eventId)}. \`latchkey webhooks deliveries\` shows the events.`,
    "missing",
  );
}

/** Sends a `ping` event to an endpoint. Returns the event's id. Throws OperatorError. */
export async function pingWebhook(
  { db, signing }: Services,
  endpointId: string,
  actor: AuditActor = { kind: "cli" },
): Promise<string> {
  const endpoint = await requireEnabled(db, endpointId);
  return await db.transaction(async (tx) => {
    const eventId = await insertPing(tx, endpoint);
    await recordAudit(tx, signing.audit, {
      accountId: endpoint.accountId,
      actor,
      action: "webhook.ping",
      subjectId: endpointId,
      detail: { event: eventId },
    });
    return eventId;
  });
}

async function requireEnabled(db: Database, endpointId: string): Promise<StoredEndpoint> {
  const endpoint = await requireEndpoint(db, endpointId);
  if (!endpoint.hasSecret)
    throw new OperatorError(
      `The webhook endpoint ${endpointId} has no signing secret yet. It gets one with: latchkey webhooks rotate ${endpointId}`,
    );
  if (endpoint.disabledAt === null) return endpoint;
  throw new OperatorError(
    `The webhook endpoint ${endpointId} is disabled. Enable it first: latchkey webhooks enable ${endpointId}`,
  );
}
