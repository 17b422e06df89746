import type { DisabledReason } from "#domain/webhook.ts";

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
