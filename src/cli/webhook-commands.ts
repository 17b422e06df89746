import type { EndpointChange, NewEndpoint } from "#actions/webhooks/manage-endpoints.ts";
import type { WhatToResend } from "#actions/webhooks/resend.ts";
import type { ListedAttempt, ListedDelivery } from "#db/webhooks/webhook-deliveries.ts";
import type { WebhookEndpoint } from "#db/webhooks/webhook-endpoints.ts";
import type { DeliveryState } from "#domain/webhook.ts";

/** One delivery, with its content and its attempts. */
export interface ShownDelivery {
  readonly eventId: string;
  /** null: it can't be rendered. */
  readonly body: string | null;
  readonly attempts: readonly ListedAttempt[];
}

/** What `latchkey webhooks` does, on this machine's installation or on the service of another one. Everything throws ExplainedErrors. */
export interface WebhookWork {
  create(endpoint: NewEndpoint): Promise<{ readonly id: string; readonly secret: string }>;
  list(account: string | undefined): Promise<readonly WebhookEndpoint[]>;
  read(id: string): Promise<WebhookEndpoint>;
  deliveries(
    id: string,
    page: { readonly state: DeliveryState | null; readonly limit: number },
  ): Promise<readonly ListedDelivery[]>;
  delivery(id: string, eventId: string): Promise<ShownDelivery>;
  update(id: string, change: EndpointChange): Promise<void>;
  rotate(
    id: string,
    overlapMs: number,
  ): Promise<{ readonly id: string; readonly secret: string; readonly previousSecretEndsAt: Date | null }>;
  change(id: string, how: "disable" | "enable" | "delete"): Promise<void>;
  /** How many events. */
  resend(id: string, what: WhatToResend): Promise<number>;
  /** The event's id. */
  ping(id: string): Promise<string>;
  /** The event's id. */
  trigger(account: string, type: string): Promise<string>;
}
