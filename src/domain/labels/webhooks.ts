import type { DeliveryState, DisabledReason, EventType, OperatorEventType } from "#domain/webhook.ts";

export type EndpointState = "active" | "failing" | "without_secret" | `disabled_${DisabledReason}`;

/** Names of an endpoint's states. */
export const ENDPOINT_STATE_NAMES: Readonly<Record<EndpointState, string>> = {
  active: "active",
  failing: "failing",
  without_secret: "without a secret",
  disabled_operator: "disabled",
  disabled_gone: "disabled: it answered 410",
  disabled_failing: "disabled: five days of failures",
};

export const endpointState = (endpoint: {
  readonly disabledReason: DisabledReason | null;
  readonly failingSince: Date | string | null;
  readonly hasSecret: boolean;
}): EndpointState => {
  if (endpoint.disabledReason !== null) return `disabled_${endpoint.disabledReason}`;
  if (!endpoint.hasSecret) return "without_secret";
  return endpoint.failingSince === null ? "active" : "failing";
};

/** Names of a delivery's states. */
export const DELIVERY_STATE_NAMES: Readonly<Record<DeliveryState, string>> = {
  pending: "pending",
  delivered: "delivered",
  failed: "given up",
};

export interface EventsOfSubject {
  readonly subject: string;
  readonly name: string;
  readonly types: readonly (readonly [type: EventType | OperatorEventType, name: string])[];
}

/** What an endpoint of the operators can subscribe to. */
export const OPERATOR_EVENTS: readonly EventsOfSubject[] = [
  {
    subject: "operator",
    name: "What needs a person",
    types: [
      ["operator.review_waiting", "A review waits"],
      ["operator.write_uncertain", "A write is uncertain"],
      ["operator.credential_locked", "A credential is locked"],
      ["operator.webhook_disabled", "An endpoint is dead"],
    ],
  },
];

/** What an endpoint of an account can subscribe to, by subject. */
export const EVENTS_BY_SUBJECT: readonly EventsOfSubject[] = [
  {
    subject: "run",
    name: "Runs",
    types: [
      ["run.started", "Started"],
      ["run.awaiting_review", "Awaiting a review"],
      ["run.completed", "Completed"],
      ["run.failed", "Failed"],
      ["run.cancelled", "Cancelled"],
      ["run.purged", "Purged"],
    ],
  },
  {
    subject: "credential_session",
    name: "Credential sessions",
    types: [
      ["credential_session.completed", "Completed"],
      ["credential_session.expired", "Expired"],
    ],
  },
  {
    subject: "embedded_credential_session",
    name: "Embedded sessions",
    types: [
      ["embedded_credential_session.completed", "Completed"],
      ["embedded_credential_session.expired", "Expired"],
    ],
  },
  {
    subject: "credential",
    name: "Credentials",
    types: [
      ["credential.needs_attention", "Login rejected"],
      ["credential.locked", "Locked"],
      ["credential.deleted", "Deleted"],
    ],
  },
  { subject: "webhook", name: "Another endpoint was disabled", types: [["webhook.disabled", "Disabled"]] },
];
