import type { DeliveryState, DisabledReason, EventType } from "#domain/webhook.ts";

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
