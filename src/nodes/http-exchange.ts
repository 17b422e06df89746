import { isUtf8 } from "node:buffer";
import {
  OutboundError,
  PASSING_FAILURES,
  PASSING_STATUSES,
  type OutboundRequest,
  type OutboundResponse,
} from "#domain/http-exchange.ts";
import { parseDuration } from "#domain/duration.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { retryAfterMs, retryDelayMs } from "#lib/retry-delay.ts";
import { charsetOf } from "./decode-text.ts";
import { NodeFailure, type NodeContext } from "./define-node.ts";
import { effectOf, isStreamed, type HttpConfig } from "./http-config.ts";
import type { Pairs, PreparedRequest } from "./http-request.ts";

/** Sends a request, again where that may help, and gives the response that the node expects. Throws NodeFailure. `place` begins its messages. */
export async function exchange(
  context: NodeContext,
  config: HttpConfig,
  request: Pick<PreparedRequest, "method" | "url" | "headers" | "body"> & { readonly query: Pairs },
  place: string,
): Promise<OutboundResponse> {
  const { retry, timeoutMs } = context.node;
  const attempts = effectOf(config) === "read" ? Math.max(1, retry.attempts) : 1;
  const outbound: OutboundRequest = {
    ...request,
    maxBytes: config.max_bytes ?? limits.responseBytesMax,
    redirectsMax: limits.redirectsMax,
    timeoutMs: timeoutMs ?? limits.requestTimeoutMs,
    toFile: isStreamed(config),
  };
  for (let attempt = 1; ; attempt += 1) {
    context.signal.throwIfAborted();
    await waitForSlot(context, config);
    const answer = await attemptOnce(context, outbound);
    const isRetried =
      answer instanceof OutboundError ? PASSING_FAILURES.has(answer.failure) : isPassing(answer, config);
    if (!isRetried || attempt >= attempts) return expected(answer, config, place, triesText(attempt));
    if (!(await context.takeRetry())) return expected(answer, config, place, triesText(attempt, NO_RETRIES));
    const waitMs = delayMs(
      context,
      attempt,
      answer instanceof OutboundError ? null : retryAfterMs(answer.headers),
    );
    const reason = answer instanceof OutboundError ? answer.failure : answer.status;
    context.log("retry", { attempt, reason, waitMs });
    await context.sleep(waitMs);
  }
}

/** Design, page 3, `throttle`: evenly spaced, for all runs of the Blueprint together. */
export async function waitForSlot(context: NodeContext, { throttle }: HttpConfig): Promise<void> {
  if (throttle === undefined) return;
  await context.takeSlot(must(parseDuration(throttle.per), "a checked duration") / throttle.requests);
}

async function attemptOnce(
  context: NodeContext,
  request: OutboundRequest,
): Promise<OutboundResponse | OutboundError> {
  try {
    return await context.send(request);
  } catch (error) {
    if (error instanceof OutboundError && error.failure !== "cancelled") return error;
    throw error;
  }
}

/** A status that may be another one soon, unless the node expects just that. */
function isPassing(response: OutboundResponse, config: HttpConfig): boolean {
  return PASSING_STATUSES.has(response.status) && config.expect?.status?.includes(response.status) !== true;
}

/** The wait before the node's next attempt. */
export function delayMs(context: NodeContext, attempt: number, askedMs: number | null): number {
  return retryDelayMs(context.node.retry, attempt, askedMs, context.random());
}

/** Why a request that may be tried again is not. */
export const NO_RETRIES = `the run's ${limits.retriesMax} retries are used up`;

export function triesText(attempts: number, more?: string): string {
  const parts = [
    ...(attempts === 1 ? [] : [`after ${attempts} attempts`]),
    ...(more === undefined ? [] : [more]),
  ];
  return parts.length === 0 ? "" : ` (${parts.join("; ")})`;
}

function expected(
  answer: OutboundResponse | OutboundError,
  config: HttpConfig,
  place: string,
  tries: string,
): OutboundResponse {
  if (answer instanceof OutboundError)
    throw new NodeFailure(`${place}: ${answer.message}${tries}`, { cause: answer });
  const problem = mismatch(answer, config);
  if (problem !== null) throw new NodeFailure(`${place}${problem}${tries}.`);
  return answer;
}

/** Why a response is not what the node expects, to stand right behind the place; null: it is. */
export function mismatch(response: OutboundResponse, config: HttpConfig): string | null {
  const { status, text, not_text: notText } = config.expect ?? {};
  const isListed =
    status === undefined
      ? response.status >= 200 && response.status <= 299
      : status.includes(response.status);
  if (!isListed) return ` answered ${response.status}; expected is ${status?.join(", ") ?? "200 to 299"}`;
  if (text === undefined && notText === undefined) return null;
  const body = response.text();
  if (text !== undefined && !body.includes(text))
    return ": the response does not hold the text of expect.text";
  if (notText !== undefined && body.includes(notText))
    return ": the response holds the text of expect.not_text";
  return null;
}

/** The body as text. Bytes that aren't text (a PDF, an image) are a NodeFailure, never mangled. */
export function responseText(response: OutboundResponse, place: string): string {
  const contentType = response.headers.get("content-type");
  const charset = charsetOf(contentType);
  if ((charset === null || charset === "utf-8" || charset === "utf8") && !isUtf8(response.body)) {
    throw new NodeFailure(
      `${place}: the response (${mediaType(contentType)}) is not UTF-8 text. \`save: file\` keeps it as a file.`,
    );
  }
  return response.text();
}

export function mediaType(contentType: string | undefined): string {
  // Whole or not at all: what the redactor looks for must not be cut in two.
  const match = /^[\w.+-]{1,60}\/[\w.+-]{1,60}(?=$|[\s;])/.exec(contentType ?? "");
  return match?.[0] ?? (contentType === undefined ? "no content type" : "an odd content type");
}
