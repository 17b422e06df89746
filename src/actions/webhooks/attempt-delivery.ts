import type { AttemptRecord, ClaimedDelivery } from "#db/webhooks/webhook-deliveries.ts";
import { limits } from "#domain/limits.ts";
import { isDelivered, nextAttemptInMs, renderEvent } from "#domain/webhook.ts";
import type { Clock } from "#lib/clock.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { Hmac } from "#lib/hmac.ts";
import { describeError, type Log } from "#lib/log.ts";
import type { Random } from "#lib/random.ts";
import { retryAfterMs } from "#lib/retry-delay.ts";
import { webhookHeaders } from "#lib/webhook-signature.ts";
import { GateError } from "#outbound/gate-error.ts";
import type { Gate, GateResponse } from "#outbound/gate.ts";

/** What an attempt needs. */
export interface AttemptServices {
  readonly gate: Gate;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Where operators' events link to. */
  readonly publicUrl: () => string;
}

/** `isOwnFault`: it ended here, because the service stops or could not make the request, and says nothing of the endpoint. */
export type Attempt = AttemptRecord & { readonly isOwnFault: boolean };

/** Where deliveries go, and how they are signed. */
export interface Destination {
  readonly endpointId: string;
  readonly url: URL;
  readonly signers: readonly Hmac[];
}

/** Sends an event to an endpoint. Never throws. */
export async function attemptDelivery(
  services: AttemptServices,
  destination: Destination,
  delivery: ClaimedDelivery,
  stopped: AbortSignal,
): Promise<Attempt> {
  const beganAtMs = services.clock.now();
  const sent = await renderAndSend(services, destination, delivery, stopped);
  const answered = typeof sent === "string" || sent instanceof GateError ? null : sent;
  const isStopped = answered === null && stopped.aborted;
  const status = answered?.status ?? null;
  const result = { status, retryAfterMs: answered && retryAfterMs(answered.headers) };
  const delivered = isDelivered(result);
  const random = services.random.integer(0, RANDOM_STEPS) / RANDOM_STEPS;
  return {
    eventId: delivery.id,
    attempt: delivery.attempt,
    beganAt: delivery.beganAt,
    durationMs: Math.round(services.clock.now() - beganAtMs),
    status,
    failure: typeof sent === "string" ? sent : failureOf(sent),
    answer: answered === null ? "" : beginningOf(answered),
    isDelivered: delivered,
    nextInMs: delivered ? null : isStopped ? 0 : nextAttemptInMs(delivery.tries, result, random),
    isOwnFault: isStopped || typeof sent === "string",
  };
}

const failureOf = (sent: GateResponse | GateError): string | null =>
  sent instanceof GateError ? sent.message.slice(0, FAILURE_CHARACTERS_MAX) : null;

/** The answer, or why there is none; a text: the service's own fault. An event that can't be sent must not keep the others back. */
async function renderAndSend(
  { gate, log, publicUrl }: AttemptServices,
  destination: Destination,
  delivery: ClaimedDelivery,
  stopped: AbortSignal,
): Promise<GateResponse | GateError | string> {
  try {
    const body = renderEvent(delivery, publicUrl());
    await failpoint("webhook.before_send");
    return await send(gate, destination, delivery, body, stopped);
  } catch (error) {
    log.error(
      {
        ...describeError(error),
        endpointId: destination.endpointId,
        eventId: delivery.id,
        type: delivery.type,
      },
      "an event could not be sent to its webhook endpoint",
    );
    const name = error instanceof Error ? error.name : "unknown";
    return `an error of Latchkey kept the event from being sent (${name}): see the log of the service`;
  }
}

const RANDOM_STEPS = 1_000;
/** The same as in the table's CHECK. */
const FAILURE_CHARACTERS_MAX = 300;

async function send(
  gate: Gate,
  { url, signers }: Destination,
  delivery: ClaimedDelivery,
  body: string,
  stopped: AbortSignal,
): Promise<GateResponse | GateError> {
  const signed = webhookHeaders({ id: delivery.id, atMs: delivery.beganAt.getTime(), body }, signers);
  try {
    return await gate.send(
      {
        method: "POST",
        url,
        headers: [["content-type", "application/json"], ["user-agent", "Latchkey-Webhooks"], ...signed],
        body,
      },
      {
        origins: [url.origin],
        // A redirect is a failure like any other status.
        redirectsMax: 0,
        maxBytes: limits.webhookAnswerBytesMax,
        cutsBody: true,
        timeoutMs: limits.webhookTimeoutMs,
      },
      stopped,
    );
  } catch (error) {
    if (error instanceof GateError) return error;
    throw error;
  }
}

/** Without control characters, which a log must not show and a database can't store. */
function beginningOf(answer: GateResponse): string {
  const text = answer.text().slice(0, limits.webhookAnswerCharactersKept);
  return text.replaceAll(/\p{Cc}/gu, " ").toWellFormed();
}
