import type { DeliveryState, DisabledReason, EventType } from "#domain/webhook.ts";

export type EndpointState = "active" | "failing" | `disabled_${DisabledReason}`;

/** Names of an endpoint's states. */
export const ENDPOINT_STATE_NAMES: Readonly<Record<EndpointState, string>> = {
  active: "active",
  failing: "failing",
  disabled_operator: "disabled",
  disabled_gone: "disabled: it answered 410",
  disabled_failing: "disabled: five days of failures",
};

export const endpointState = (endpoint: {
  readonly disabledReason: DisabledReason | null;
  readonly failingSince: Date | string | null;
}): EndpointState =>
  endpoint.disabledReason === null
    ? endpoint.failingSince === null
      ? "active"
      : "failing"
    : `disabled_${endpoint.disabledReason}`;

/** Names of a delivery's states. */
export const DELIVERY_STATE_NAMES: Readonly<Record<DeliveryState, string>> = {
  pending: "pending",
  delivered: "delivered",
  failed: "given up",
};

/** What an endpoint can subscribe to, by subject. */
export const EVENTS_BY_SUBJECT: readonly {
  readonly subject: string;
  readonly name: string;
  readonly types: readonly (readonly [type: EventType, name: string])[];
}[] = [
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
  { subject: "webhook", name: "Other endpoints", types: [["webhook.disabled", "Disabled"]] },
];
