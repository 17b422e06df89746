import { projectSession } from "./credential-session.ts";
import { projectEmbeddedSession } from "./embedded-session.ts";
import { limits } from "./limits.ts";
import { LOOPBACK } from "./account-secret.ts";
import { projectRun } from "./run.ts";
import { isTestTarget } from "./test-mode.ts";

/** Every type of event, with its meaning. The triggers of the database write them, except for those of endpoints. */
export const EVENT_TYPES = {
  "credential_session.completed": "A credential session was completed: its credential can be used.",
  "credential_session.expired": "A credential session expired without a credential.",
  "embedded_credential_session.completed": "An embedded session was completed: its credentials can be used.",
  "embedded_credential_session.expired": "An embedded session expired before it was completed.",
  "credential.deleted": "A credential was deleted.",
  "credential.needs_attention": "The target rejected a login with a credential.",
  "credential.locked":
    "A credential is not used for a while, because the target rejected several logins in a row.",
  "run.started": "A run has logged in and begun its work.",
  "run.awaiting_review": "A run waits for a person's decision.",
  "run.completed": "A run was completed: its results can be fetched.",
  "run.failed": "A run failed.",
  "run.cancelled": "A run was cancelled.",
  "run.purged": "A run's inputs and results were deleted.",
  "webhook.disabled":
    "Another endpoint of the account was disabled, because it answered 410 or failed for five days.",
  ping: "A test, sent by an operator.",
} as const;
export type EventType = keyof typeof EVENT_TYPES;

/** The types of events for the operators themselves: what waits for a person, in any account. Triggers of the database write them. */
export const OPERATOR_EVENT_TYPES = {
  "operator.review_waiting": "A run waits for a person's decision.",
  "operator.write_uncertain": "Whether a write of a run happened is uncertain, and a person must decide.",
  "operator.credential_locked":
    "A credential is not used for a while, because the target rejected several logins in a row.",
  "operator.webhook_disabled": "An endpoint was disabled, because it answered 410 or failed for five days.",
} as const;
export type OperatorEventType = keyof typeof OPERATOR_EVENT_TYPES;

const subscriptionsOf = (types: readonly string[]): readonly string[] => [
  "*",
  ...new Set(types.flatMap((type) => (type.includes(".") ? [`${type.split(".")[0] ?? ""}.*`] : []))),
  ...types.filter((type) => type !== "ping"),
];

/** What an endpoint can subscribe to: types, all types of one subject, or everything. */
export const SUBSCRIPTIONS = subscriptionsOf(Object.keys(EVENT_TYPES));
/** The same for an endpoint of the operators. */
export const OPERATOR_SUBSCRIPTIONS = subscriptionsOf(Object.keys(OPERATOR_EVENT_TYPES));

/** Why an endpoint is disabled: by an operator, by its answer 410, or after five days of nothing but failures. */
export const DISABLED_REASONS = ["operator", "gone", "failing"] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

export const DELIVERY_STATES = ["pending", "delivered", "failed"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** An event as it is stored. */
export interface WebhookEvent {
  readonly id: string;
  readonly type: string;
  readonly occurredAt: Date;
  /** The columns that its subject's projection needs. */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * The JSON body of an event: its type, its time, and what the API shows of its subject at that time. `publicUrl`: where operators' events
 * link to.
 */
export function renderEvent(event: WebhookEvent, publicUrl: string): string {
  return JSON.stringify({
    type: event.type,
    timestamp: event.occurredAt.toISOString(),
    data: projectSubject(event.type, event.data, publicUrl),
  });
}

function projectSubject(type: string, data: WebhookEvent["data"], publicUrl: string): object {
  const row = data as never;
  switch (type.split(".")[0]) {
    case "run":
      return projectRun(row);
    // Neither has a URL any more.
    case "credential_session":
      return projectSession(row, "");
    case "embedded_credential_session":
      return projectEmbeddedSession(row, "");
    case "credential":
      return { id: data["id"], strategy_id: data["strategyId"] };
    case "operator":
      return projectForOperators(data, publicUrl);
    default:
      return data;
  }
}

/** Names, ids and the page of the dashboard: nothing of a person's data. */
function projectForOperators(data: WebhookEvent["data"], publicUrl: string): object {
  const [page, id] =
    PAGES.map(([at, name]) => [at, data[name]] as const).find(([, value]) => typeof value === "string") ?? [];
  return {
    ...Object.fromEntries(
      Object.entries(data).map(([name, value]) => [
        name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        value,
      ]),
    ),
    url: `${publicUrl}/dashboard/${page}/${String(id)}`,
  };
}

/** The page that an event is about, by the name of its id: the first that it has. */
const PAGES = [
  ["reviews", "reviewId"],
  ["runs", "runId"],
  ["credentials", "credentialId"],
  ["webhooks", "webhookId"],
] as const;

/** The URL's problem as an endpoint, as a sentence; null: it is valid. */
export function endpointUrlProblem(text: string): string | null {
  if (text.length > limits.webhookUrlCharactersMax)
    return `The URL has more than ${limits.webhookUrlCharactersMax} characters.`;
  if (!URL.canParse(text))
    return "The URL of an endpoint must be absolute, such as https://example.com/webhooks.";
  const { protocol, hostname, username, password, hash } = new URL(text);
  if (protocol !== "https:" && !(protocol === "http:" && LOOPBACK.test(hostname)))
    return "The URL of an endpoint must begin with https:// (plain http is only allowed for loopback hosts).";
  if (username !== "" || password !== "")
    return "The URL of an endpoint can't have a user name or password. Deliveries are signed instead.";
  if (isTestTarget(new URL(text)))
    return "The URL of an endpoint can't be at the target of test mode: it has no endpoints.";
  return hash === "" ? null : "The URL of an endpoint can't have a fragment (`#…`).";
}

/** The problem with what an endpoint subscribes to, as a sentence; null: it is valid. `known`: what it can have. */
export function subscriptionsProblem(events: readonly string[], known = SUBSCRIPTIONS): string | null {
  const unknown = events.find((event) => !known.includes(event));
  if (unknown !== undefined)
    return `There is no event ${JSON.stringify(unknown)}. An endpoint can have: ${known.join(", ")}.`;
  if (events.length === 0) return 'An endpoint needs events; "*" is all of them.';
  return new Set(events).size === events.length ? null : "An event is listed twice.";
}

/** The result of an attempt. */
export interface AttemptResult {
  /** null: there was no answer. */
  readonly status: number | null;
  /** Milliseconds, from `Retry-After`; null: none. */
  readonly retryAfterMs: number | null;
}

export const isDelivered = ({ status }: AttemptResult): boolean =>
  status !== null && status >= 200 && status < 300;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The delays after the first attempt, the second and so on: the last one is about three days after the event. */
export const RETRY_DELAYS_MS: readonly number[] = [
  5_000,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];
const JITTER = 0.2;

/** The delay before the next attempt after the `tries`th (from 1) has failed; null: there is none. `random`: in [0, 1). */
export function nextAttemptInMs(tries: number, result: AttemptResult, random: number): number | null {
  const delayMs = RETRY_DELAYS_MS[tries - 1];
  if (delayMs === undefined) return null;
  const jittered = Math.round(delayMs * (1 - JITTER + 2 * JITTER * random));
  const isBusy = result.status === 429 || result.status === 503;
  const askedMs = isBusy ? Math.min(result.retryAfterMs ?? 0, limits.webhookRetryAfterMsMax) : 0;
  return Math.max(jittered, askedMs);
}
