import * as contract from "#contract/operator/webhooks.ts";
import type { OperatorAnswer } from "#contract/operator/operation.ts";
import type { WebhookEndpoint } from "#db/webhooks/webhook-endpoints.ts";
import { limits } from "#domain/limits.ts";
import type { EventType } from "#domain/webhook.ts";
import { CommandFailed } from "./output.ts";
import type { RemoteService } from "./remote.ts";
import type { WebhookWork } from "./webhook-commands.ts";

const SECOND_MS = 1_000;

const timeOf = (text: string | null): Date | null => (text === null ? null : new Date(text));

type Shown = OperatorAnswer<typeof contract.listWebhooks>["items"][number];

const endpointOf = (shown: Shown): WebhookEndpoint => ({
  id: shown.id,
  account: shown.account,
  url: shown.url,
  description: shown.description,
  events: shown.events,
  createdAt: new Date(shown.created_at),
  disabledAt: timeOf(shown.disabled_at),
  disabledReason: shown.disabled_reason,
  failingSince: timeOf(shown.failing_since),
  previousSecretEndsAt: timeOf(shown.previous_secret_ends_at),
  hasSecret: shown.has_secret,
  isFromDocument: shown.is_from_document,
});

/** `latchkey webhooks` on the service of another machine. */
export function webhooksThere(service: RemoteService): WebhookWork {
  const list: WebhookWork["list"] = async (account) => {
    const query = account === undefined ? {} : { account };
    const { items } = await service.call(contract.listWebhooks, { query });
    return items.map(endpointOf);
  };
  return {
    list,
    create: async ({ account, url, events, description }) =>
      await service.call(contract.createWebhook, {
        body: { ...(account !== null && { account }), url, events: [...events], description },
      }),
    update: async (id, changes) => await updateThere(service, id, changes),
    read: async (id) => {
      const found = (await list(undefined)).find((each) => each.id === id);
      if (found !== undefined) return found;
      throw new CommandFailed(
        `There is no webhook endpoint ${JSON.stringify(id)}. \`latchkey webhooks list\` shows the ids.`,
      );
    },
    deliveries: async (id, { state, limit }) => await deliveriesOf(service, id, state, limit),
    delivery: async (id, eventId) => {
      const params = { webhookId: id, eventId };
      const { body, attempts } = await service.call(contract.readWebhookDelivery, { params });
      return {
        eventId,
        body,
        attempts: attempts.map((each) => ({
          number: each.number,
          beganAt: new Date(each.began_at),
          durationMs: each.duration_ms,
          status: each.status,
          failure: each.failure,
          answer: each.answer,
        })),
      };
    },
    rotate: async (id, overlapMs) => {
      const body = { overlap_seconds: Math.floor(overlapMs / SECOND_MS) };
      const made = await service.call(contract.rotateWebhook, { params: { webhookId: id }, body });
      return { id, secret: made.secret, previousSecretEndsAt: timeOf(made.previous_secret_ends_at) };
    },
    change: async (id, how) => {
      const { disableWebhook: disable, enableWebhook: enable, deleteWebhook } = contract;
      await service.call({ disable, enable, delete: deleteWebhook }[how], { params: { webhookId: id } });
    },
    resend: async (id, what) => {
      if ("eventId" in what) {
        await service.call(contract.resendWebhook, { params: { webhookId: id, eventId: what.eventId } });
        return 1;
      }
      const body = { since: what.failedSince };
      const { events } = await service.call(contract.resendFailedWebhooks, {
        params: { webhookId: id },
        body,
      });
      return events;
    },
    ping: async (id) => (await service.call(contract.pingWebhook, { params: { webhookId: id } })).event_id,
    trigger: async (account, type) => {
      // The service refuses what it does not know, with its own list.
      const body = { account, type: type as EventType };
      return (await service.call(contract.triggerWebhookEvent, { body })).event_id;
    },
  };
}

const updateThere = async (
  service: RemoteService,
  id: string,
  { events, description, url }: Parameters<WebhookWork["update"]>[1],
): ReturnType<WebhookWork["update"]> =>
  await service.call(contract.updateWebhook, {
    params: { webhookId: id },
    body: {
      ...(events && { events: [...events] }),
      ...(description !== undefined && { description }),
      ...(url !== undefined && { url }),
    },
  });

async function deliveriesOf(
  service: RemoteService,
  id: string,
  state: Parameters<WebhookWork["deliveries"]>[1]["state"],
  limit: number,
): ReturnType<WebhookWork["deliveries"]> {
  const query = { limit: Math.min(limit, limits.pageItemsMax), ...(state === null ? {} : { state }) };
  const { items } = await service.call(contract.listWebhookDeliveries, { params: { webhookId: id }, query });
  return items.map((each) => ({
    eventId: each.event_id,
    type: each.type,
    subjectId: each.subject_id,
    subjectName: each.subject_name,
    occurredAt: new Date(each.occurred_at),
    state: each.state,
    attempts: each.attempts,
    nextAttemptAt: timeOf(each.next_attempt_at),
    lastStatus: each.last_status,
    lastFailure: each.last_failure,
    lastDurationMs: each.last_duration_ms,
  }));
}
