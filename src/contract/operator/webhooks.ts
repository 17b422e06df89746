import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { DELIVERY_STATES, DISABLED_REASONS, OPERATOR_SUBSCRIPTIONS, SUBSCRIPTIONS } from "#domain/webhook.ts";
import { TRIGGERED_TYPES } from "#domain/webhook-example.ts";
import {
  closed,
  conflict,
  count,
  givenTime,
  missing,
  ofAccount,
  oneOf,
  orNull,
  page,
  paging,
  text,
  time,
  whole,
} from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Webhooks");

const subscriptions = Type.Array(
  oneOf(
    [...new Set([...SUBSCRIPTIONS, ...OPERATOR_SUBSCRIPTIONS])],
    "A type, all types of a subject, or `*`; `operator.*` are those of an endpoint without an account.",
  ),
  {
    minItems: 1,
    maxItems: SUBSCRIPTIONS.length,
    uniqueItems: true,
    description: "From now on.",
  },
);
const webhookUrl = Type.String({
  minLength: 1,
  maxLength: limits.webhookUrlCharactersMax,
  description: "Where events are posted: `https://…`.",
});
const description = Type.String({
  maxLength: limits.webhookDescriptionCharactersMax,
  description: "For people.",
});

const secret = text("The signing secret (`whsec_...`). It is shown only once.");
const endpoint = missing("webhook endpoint");
const disabled = conflict("The endpoint is disabled.");

export const listWebhooks = defineOperation({
  id: "listWebhooks",
  method: "get",
  path: "/webhooks",
  summary: "List webhook endpoints",
  description: "Their secrets are never returned.",
  permission: "webhook.read",
  accounts: "own",
  query: closed({ account: ofAccount }),
  answer: whole(
    "Webhooks",
    closed(
      {
        id: text("The endpoint's id (`we_...`)."),
        account: orNull(text("The account's name; `null`: it is of the operators.")),
        url: text("Where events are posted."),
        description: text("For people."),
        events: Type.Array(text("A type, all types of a subject such as `run.*`, or `*`.")),
        created_at: time("When it was created."),
        disabled_at: orNull(time("When it was disabled; `null`: it is enabled.")),
        disabled_reason: orNull(
          oneOf(
            DISABLED_REASONS,
            "`operator`; `gone`: it answered 410; `failing`: every attempt of five days failed.",
          ),
        ),
        failing_since: orNull(time("Every attempt has failed since; `null`: the last one succeeded.")),
        previous_secret_ends_at: orNull(
          time("Until when deliveries are also signed with the previous secret."),
        ),
        has_secret: Type.Boolean({
          description: "Whether it has a signing secret. Without one, events wait.",
        }),
        is_from_document: Type.Boolean({
          description: "Whether the account's document has it, which alone changes it.",
        }),
        waiting: count("Events that wait to be delivered, counted up to 10,000."),
        recent: closed({
          delivered: count("How many of the newest 200 deliveries were made."),
          given_up: count("How many of them were given up."),
        }),
        last_delivered_at: orNull(time("When the last of them was delivered.")),
      },
      { title: "Webhook" },
    ),
  ),
});

export const createWebhook = defineOperation({
  id: "createWebhook",
  method: "post",
  path: "/webhooks",
  summary: "Create a webhook endpoint",
  permission: "webhook.manage",
  body: closed({
    account: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: "The account's name; without one, the endpoint gets the events of operators.",
      }),
    ),
    url: webhookUrl,
    events: Type.Optional({ ...subscriptions, description: "Default: all." }),
    description: Type.Optional(description),
  }),
  status: 201,
  answer: closed({ id: text("`we_...`"), secret }, { title: "NewWebhook" }),
  failures: [missing("account"), conflict("The account has the maximum number of endpoints.")],
});

export const updateWebhook = defineOperation({
  id: "updateWebhook",
  method: "post",
  path: "/webhooks/{webhookId}",
  summary: "Change what a webhook endpoint gets",
  description:
    "A member that is omitted stays. Another URL gets what waits for the endpoint as well, signed with the same secret; a disabled endpoint stays disabled.",
  permission: "webhook.manage",
  body: closed({
    url: Type.Optional(webhookUrl),
    events: Type.Optional(subscriptions),
    description: Type.Optional(description),
  }),
  failures: [endpoint, conflict("The account's document has the endpoint, or it can't have such events.")],
});

export const rotateWebhook = defineOperation({
  id: "rotateWebhook",
  method: "post",
  path: "/webhooks/{webhookId}/rotate",
  summary: "Rotate the signing secret of a webhook endpoint",
  permission: "webhook.manage",
  body: closed({
    overlap_seconds: Type.Integer({
      minimum: 0,
      maximum: limits.webhookOverlapMsMax / 1_000,
      description: "How long deliveries are also signed with the old secret, in seconds.",
    }),
  }),
  status: 201,
  answer: closed(
    {
      id: text("`we_...`"),
      secret,
      previous_secret_ends_at: orNull(time("Until when the old secret signs, too.")),
    },
    { title: "RotatedWebhook" },
  ),
  failures: [endpoint],
});

export const disableWebhook = defineOperation({
  id: "disableWebhook",
  method: "post",
  path: "/webhooks/{webhookId}/disable",
  summary: "Disable a webhook endpoint",
  description: "New events are not kept for it. Pending deliveries wait until it is enabled.",
  permission: "webhook.manage",
  failures: [endpoint, disabled],
});

export const enableWebhook = defineOperation({
  id: "enableWebhook",
  method: "post",
  path: "/webhooks/{webhookId}/enable",
  summary: "Enable a webhook endpoint",
  permission: "webhook.manage",
  failures: [endpoint, conflict("The endpoint is enabled.")],
});

export const deleteWebhook = defineOperation({
  id: "deleteWebhook",
  method: "delete",
  path: "/webhooks/{webhookId}",
  summary: "Delete a webhook endpoint with its delivery log",
  permission: "webhook.manage",
  failures: [endpoint, conflict("The account's document has the endpoint.")],
});

export const listWebhookDeliveries = defineOperation({
  id: "listWebhookDeliveries",
  method: "get",
  path: "/webhooks/{webhookId}/deliveries",
  summary: "List the deliveries to a webhook endpoint, newest first",
  permission: "webhook.read",
  query: closed({
    state: Type.Optional(oneOf(DELIVERY_STATES, "Only these.")),
    ...paging,
  }),
  answer: page(
    "WebhookDeliveries",
    closed(
      {
        event_id: text("The event's id (`msg_...`), the header `webhook-id`."),
        type: text("The type of the event."),
        subject_id: text("The run, session or credential."),
        subject_name: orNull(text("The run's name; `null`: it has none, or it is no run.")),
        occurred_at: time("When it happened."),
        state: oneOf(DELIVERY_STATES, "`failed`: it was given up."),
        attempts: count("How many attempts were made."),
        next_attempt_at: orNull(time("When the next attempt is due; `null`: there is none.")),
        last_status: orNull(Type.Integer({ description: "The status of the last answer." })),
        last_failure: orNull(text("Why the last attempt had no answer.")),
        last_duration_ms: orNull(count("How long the last attempt took.")),
      },
      { title: "WebhookDelivery" },
    ),
  ),
  failures: [endpoint],
});

export const readWebhookDelivery = defineOperation({
  id: "readWebhookDelivery",
  method: "get",
  path: "/webhooks/{webhookId}/deliveries/{eventId}",
  summary: "Read one delivery: its content, and each attempt",
  permission: "webhook.read",
  answer: closed(
    {
      event_id: text("The event's id (`msg_...`)."),
      body: orNull(
        text("The request's body, JSON; `null`: it can't be rendered, and the service's log says why."),
      ),
      attempts: Type.Array(
        closed(
          {
            number: count("From 1."),
            began_at: time("When it began."),
            duration_ms: count("How long it took."),
            status: orNull(Type.Integer({ description: "The status of the answer." })),
            failure: orNull(text("Why there was no answer.")),
            answer: text("The beginning of the answer's body."),
          },
          { title: "WebhookAttempt" },
        ),
      ),
    },
    { title: "WebhookDeliveryDetail" },
  ),
  failures: [missing("delivery")],
});

export const resendWebhook = defineOperation({
  id: "resendWebhook",
  method: "post",
  path: "/webhooks/{webhookId}/deliveries/{eventId}/resend",
  summary: "Send an event to a webhook endpoint again",
  description: "Under the same `webhook-id`.",
  permission: "webhook.resend",
  failures: [missing("delivery"), disabled],
});

export const resendFailedWebhooks = defineOperation({
  id: "resendFailedWebhooks",
  method: "post",
  path: "/webhooks/{webhookId}/resend-failed",
  summary: "Send all events again whose delivery was given up since a time",
  permission: "webhook.resend",
  body: closed({ since: givenTime("The earliest time at which a delivery was given up.") }),
  answer: closed({ events: count("How many will be sent again.") }, { title: "ResentWebhooks" }),
  failures: [endpoint, disabled],
});

export const pingWebhook = defineOperation({
  id: "pingWebhook",
  method: "post",
  path: "/webhooks/{webhookId}/ping",
  summary: "Send a `ping` to a webhook endpoint",
  permission: "webhook.resend",
  status: 201,
  answer: closed({ event_id: text("The event's id (`msg_...`).") }, { title: "WebhookPing" }),
  failures: [endpoint, disabled],
});

export const triggerWebhookEvent = defineOperation({
  id: "triggerWebhookEvent",
  method: "post",
  path: "/webhooks/trigger",
  summary: "Send a made-up event to an account's webhook endpoints",
  description:
    "To those that subscribe to its type, and to the streams of the account's events. Its objects do not exist.",
  permission: "webhook.manage",
  body: closed({
    account: Type.String({ minLength: 1, maxLength: 200, description: "The account's name." }),
    type: oneOf(TRIGGERED_TYPES, "The type of the event."),
  }),
  status: 201,
  answer: closed({ event_id: text("The event's id (`msg_...`).") }, { title: "TriggeredEvent" }),
  failures: [missing("account"), conflict("No endpoint subscribes to the type, and nobody listens.")],
});
