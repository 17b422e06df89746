import { accountIdsOf, OperatorError } from "#actions/operator-error.ts";
import {
  createWebhookEndpoint,
  requireEndpoint,
  updateWebhook,
  type EndpointChange,
  type NewEndpoint,
} from "#actions/webhooks/manage-endpoints.ts";
import { renderOrReport } from "#actions/webhooks/render-or-report.ts";
import type { Needs } from "#actions/services.ts";
import type { Database } from "#db/connection/pool.ts";
import { findDelivery, listDeliveries, type ListedDelivery } from "#db/webhooks/webhook-deliveries.ts";
import {
  listEndpointActivity,
  listWebhookEndpoints,
  type EndpointActivity,
} from "#db/webhooks/webhook-endpoints.ts";
import { limits } from "#domain/limits.ts";
import { invalidField } from "#domain/problem.ts";
import { endpointUrlProblem, type DeliveryState } from "#domain/webhook.ts";
import { describeError } from "#lib/log.ts";
import { actorOf, type Principal } from "./operator-caller.ts";

const iso = (time: Date | null): string | null => time?.toISOString() ?? null;

/** The endpoints of one account, or of all. Throws OperatorError. */
export async function listWebhooks(
  db: Database,
  account: string | undefined,
  limit: readonly string[] | null,
) {
  const rows = await listWebhookEndpoints(
    db,
    account === undefined ? limit : await accountIdsOf(db, account, limit),
  );
  const activity = await listEndpointActivity(
    db,
    rows.map(({ id }) => id),
    { among: RECENT, waitingMax: WAITING_MAX },
  );
  return rows.map((row) => ({
    id: row.id,
    account: row.account,
    url: row.url,
    description: row.description,
    events: [...row.events],
    created_at: row.createdAt.toISOString(),
    disabled_at: iso(row.disabledAt),
    disabled_reason: row.disabledReason,
    failing_since: iso(row.failingSince),
    previous_secret_ends_at: iso(row.previousSecretEndsAt),
    has_secret: row.hasSecret,
    is_from_document: row.isFromDocument,
    ...showActivity(activity.find(({ endpointId }) => endpointId === row.id)),
  }));
}

/** Deliveries that are looked at, newest first, and the number at which counting stops: both take as long with a million. */
const RECENT = 200;
const WAITING_MAX = 10_000;

const showActivity = (of: EndpointActivity | undefined) => ({
  waiting: of?.waiting ?? 0,
  recent: { delivered: of?.delivered ?? 0, given_up: of?.givenUp ?? 0 },
  last_delivered_at: iso(of?.lastDeliveredAt ?? null),
});

/** Only the result contains the secret. Throws OperatorError, Problem 422. */
export async function createWebhookAs(
  services: Needs<"db" | "signing" | "vault">,
  caller: Principal,
  endpoint: NewEndpoint,
) {
  const problem = endpointUrlProblem(endpoint.url);
  if (problem !== null) throw invalidField("url", problem);
  return await createWebhookEndpoint(services, endpoint, actorOf(caller));
}

/** Throws OperatorError, Problem 422. */
export async function updateWebhookAs(
  services: Needs<"db" | "signing">,
  caller: Principal,
  id: string,
  change: EndpointChange,
): Promise<void> {
  const problem = change.url === undefined ? null : endpointUrlProblem(change.url);
  if (problem !== null) throw invalidField("url", problem);
  await updateWebhook(services, id, change, actorOf(caller));
}

/** A page of an endpoint's deliveries. The cursor is the page's last event. Throws OperatorError, Problem 422. */
export async function listWebhookDeliveries(
  db: Database,
  endpointId: string,
  query: { readonly state?: DeliveryState; readonly cursor?: string; readonly limit?: number },
) {
  const { state = null, cursor = null, limit = limits.pageItems } = query;
  if (cursor !== null && !/^msg_[0-9a-f]{32}$/.test(cursor))
    throw invalidField("cursor", "`cursor` must be the `next_cursor` of an earlier page.");
  await requireEndpoint(db, endpointId);
  const rows = await listDeliveries(db, endpointId, { state, afterEventId: cursor, limit: limit + 1 });
  const shown = rows.slice(0, limit);
  return {
    items: shown.map(showDelivery),
    next_cursor: rows.length > limit ? (shown.at(-1)?.eventId ?? null) : null,
  };
}

const showDelivery = (row: ListedDelivery) => ({
  event_id: row.eventId,
  type: row.type,
  subject_id: row.subjectId,
  subject_name: row.subjectName,
  occurred_at: row.occurredAt.toISOString(),
  state: row.state,
  attempts: row.attempts,
  next_attempt_at: iso(row.nextAttemptAt),
  last_status: row.lastStatus,
  last_failure: row.lastFailure,
  last_duration_ms: row.lastDurationMs,
});

/** `body`: null if the event can't be rendered, which is logged. Throws OperatorError. */
export async function readWebhookDelivery(
  { db, log, publicUrl }: Needs<"db" | "log" | "publicUrl">,
  endpointId: string,
  eventId: string,
) {
  const found = await findDelivery(db, endpointId, eventId);
  if (found === undefined)
    throw new OperatorError(`The webhook endpoint ${endpointId} has no delivery of this event.`, "missing");
  return {
    event_id: found.event.id,
    body: renderOrReport(found.event, publicUrl(), (error) =>
      log.error({ ...describeError(error), endpointId, eventId }, "an event could not be rendered"),
    ),
    attempts: found.attempts.map((attempt) => ({
      number: attempt.number,
      began_at: attempt.beganAt.toISOString(),
      duration_ms: attempt.durationMs,
      status: attempt.status,
      failure: attempt.failure,
      answer: attempt.answer,
    })),
  };
}
