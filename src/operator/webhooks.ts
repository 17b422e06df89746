import { actorOf } from "#actions/operators/operator-caller.ts";
import {
  createWebhookAs,
  listWebhookDeliveries,
  listWebhooks,
  readWebhookDelivery,
  updateWebhookAs,
} from "#actions/operators/manage-webhooks.ts";
import {
  deleteWebhook as deleteEndpoint,
  disableWebhook,
  enableWebhook,
  rotateWebhookSecret,
} from "#actions/webhooks/manage-endpoints.ts";
import { pingWebhook, resendWebhooks } from "#actions/webhooks/resend.ts";
import { triggerEvent } from "#actions/webhooks/trigger-event.ts";
import type * as contract from "#contract/operator/webhooks.ts";
import type { Handler } from "./context.ts";

type Params = Readonly<Record<string, string>>;
const endpointOf = (params: Params): string => params["webhookId"] ?? "";
const eventOf = (params: Params): string => params["eventId"] ?? "";

export const getWebhooks: Handler<typeof contract.listWebhooks> = async ({ services, limit }, { query }) => ({
  items: await listWebhooks(services.db, query.account, limit),
});

export const postWebhook: Handler<typeof contract.createWebhook> = async ({ services, caller }, { body }) => {
  const { account = null, url, events = ["*"], description = "" } = body;
  return await createWebhookAs(services, caller, { account, url, events, description });
};

export const postUpdate: Handler<typeof contract.updateWebhook> = async (
  { services, caller },
  { params, body },
) => await updateWebhookAs(services, caller, endpointOf(params), body);

export const postRotate: Handler<typeof contract.rotateWebhook> = async (
  { services, caller },
  { params, body },
) => {
  const request = { id: endpointOf(params), overlapMs: body.overlap_seconds * 1_000 };
  const { previousSecretEndsAt, ...made } = await rotateWebhookSecret(services, request, actorOf(caller));
  return { ...made, previous_secret_ends_at: previousSecretEndsAt?.toISOString() ?? null };
};

export const postDisable: Handler<typeof contract.disableWebhook> = async (
  { services, caller },
  { params },
) => await disableWebhook(services, endpointOf(params), actorOf(caller));

export const postEnable: Handler<typeof contract.enableWebhook> = async ({ services, caller }, { params }) =>
  await enableWebhook(services, endpointOf(params), actorOf(caller));

export const deleteWebhook: Handler<typeof contract.deleteWebhook> = async (
  { services, caller },
  { params },
) => await deleteEndpoint(services, endpointOf(params), actorOf(caller));

export const getDeliveries: Handler<typeof contract.listWebhookDeliveries> = async (
  { services },
  { params, query },
) => await listWebhookDeliveries(services.db, endpointOf(params), query);

export const getDelivery: Handler<typeof contract.readWebhookDelivery> = async ({ services }, { params }) =>
  await readWebhookDelivery(services, endpointOf(params), eventOf(params));

export const postResend: Handler<typeof contract.resendWebhook> = async ({ services, caller }, { params }) =>
  void (await resendWebhooks(services, endpointOf(params), { eventId: eventOf(params) }, actorOf(caller)));

export const postResendFailed: Handler<typeof contract.resendFailedWebhooks> = async (
  { services, caller },
  { params, body },
) => ({
  events: await resendWebhooks(services, endpointOf(params), { failedSince: body.since }, actorOf(caller)),
});

export const postPing: Handler<typeof contract.pingWebhook> = async ({ services, caller }, { params }) => ({
  event_id: await pingWebhook(services, endpointOf(params), actorOf(caller)),
});

export const postTrigger: Handler<typeof contract.triggerWebhookEvent> = async (
  { services, caller },
  { body },
) => ({ event_id: await triggerEvent(services, body, actorOf(caller)) });
