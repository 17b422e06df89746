import { isUtf8 } from "node:buffer";
import { findMiss, isAnswer, type AnswerTools } from "#answers/expectation.ts";
import type { Scope } from "#domain/expression.ts";
import {
  OutboundError,
  PASSING_FAILURES,
  PASSING_STATUSES,
  type OutboundRequest,
  type OutboundResponse,
} from "#domain/http-exchange.ts";
import { hasDestination } from "#domain/http-methods.ts";
import { parseDuration } from "#domain/duration.ts";
import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { retryAfterMs, retryDelayMs } from "#lib/retry-delay.ts";
import { charsetOf, decodeWhole } from "#nodes/parse/decode-text.ts";
import { NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import { kindOf, valueOf } from "#nodes/records/expression-value.ts";
import { effectOf, isStreamed, type HttpConfig } from "./http-config.ts";
import type { Pairs, PreparedRequest } from "./http-request.ts";

/** The context of a request. */
export interface Subject {
  /** The beginning of messages about it. */
  readonly place: string;
  /** Variables of expressions over its answer, in addition to the run's: `$record`. */
  readonly seen: JsonObject;
}

/** The context of a request with its template scope. */
export interface RequestContext extends Subject {
  /** The scope of its templates. */
  readonly scope: Scope;
}

/** Sends a request, with retries, and returns the response if it meets the node's conditions. Throws NodeFailure. */
export async function exchange(
  context: NodeContext,
  config: HttpConfig,
  request: Pick<PreparedRequest, "method" | "url" | "headers" | "body"> & { readonly query: Pairs },
  subject: Subject,
): Promise<OutboundResponse> {
  const { retry, timeoutMs } = context.node;
  const attempts = effectOf(config) === "read" ? Math.max(1, retry.attempts) : 1;
  const outbound: OutboundRequest = {
    ...request,
    maxBytes: config.max_bytes ?? limits.responseBytesMax,
    redirectsMax: config.follow === false ? 0 : limits.redirectsMax,
    timeoutMs: timeoutMs ?? limits.requestTimeoutMs,
    toFile: isStreamed(config),
  };
  for (let attempt = 1; ; attempt += 1) {
    context.signal.throwIfAborted();
    await waitForSlot(context, config, request.url);
    const answer = await attemptOnce(context, outbound);
    const isRetried =
      answer instanceof OutboundError ? PASSING_FAILURES.has(answer.failure) : isPassing(answer, config);
    if (!isRetried || attempt >= attempts)
      return await expected(context, config, answer, subject, triesText(attempt));
    if (!(await context.takeRetry()))
      return await expected(context, config, answer, subject, triesText(attempt, NO_RETRIES));
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

/**
 * `throttle` (docs/nodes/http.md): waits for a slot; slots are evenly spaced over all runs of the Blueprint. Then for one of the host, if the
 * account's document has a throttle for it.
 */
export async function waitForSlot(
  context: NodeContext,
  { throttle }: HttpConfig,
  url: string,
): Promise<void> {
  const per = throttle && must(parseDuration(throttle.per), "a checked duration");
  await context.takeSlot(per === undefined ? null : per / must(throttle?.requests, "requests"), url);
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

/** A transient status, unless the node expects it. */
function isPassing(response: OutboundResponse, config: HttpConfig): boolean {
  return PASSING_STATUSES.has(response.status) && config.expect?.status?.includes(response.status) !== true;
}

/** The wait before the node's next attempt. */
export function delayMs(context: NodeContext, attempt: number, askedMs: number | null): number {
  return retryDelayMs(context.node.retry, attempt, askedMs, context.random());
}

/** Why a request is not retried although it could be. */
export const NO_RETRIES = `the run's ${limits.retriesMax} retries are used up`;

export function triesText(attempts: number, more?: string): string {
  const parts = [
    ...(attempts === 1 ? [] : [`after ${attempts} attempts`]),
    ...(more === undefined ? [] : [more]),
  ];
  return parts.length === 0 ? "" : ` (${parts.join("; ")})`;
}

async function expected(
  context: NodeContext,
  config: HttpConfig,
  answer: OutboundResponse | OutboundError,
  subject: Subject,
  tries: string,
): Promise<OutboundResponse> {
  const { place } = subject;
  if (answer instanceof OutboundError)
    throw new NodeFailure(`${place}: ${answer.message}${tries}`, { cause: answer });
  const problem = await mismatch(context, config, answer, subject);
  if (problem !== null) throw new NodeFailure(`${place}${problem}${tries}.`, { answer });
  return answer;
}

/**
 * Why a response does not meet the node's conditions, as a phrase that follows the place; null: it does. RFC 4918, 9.8.5 and
 * 9.9.4: a successful COPY or MOVE is answered with 201 or 204, and a partly failed one with 207.
 */
export async function mismatch(
  context: NodeContext,
  { expect, request }: HttpConfig,
  response: OutboundResponse,
  subject: Subject,
): Promise<string | null> {
  if (response.status === 207 && expect?.status === undefined && hasDestination(request.method))
    return " returned 207: a part of it failed";
  if (expect === undefined && response.status >= 200 && response.status <= 299) return null;
  const miss = await findMiss(answerTools(context, subject), expect, response);
  if (miss === null) return null;
  if (miss.kind === "content") return `: ${miss.phrase}`;
  const wanted = miss.listed?.join(", ") ?? "200 to 299";
  const slot = context.node.credential;
  // RFC 9110, 15.5.2.
  const why =
    miss.status === 401 && slot !== null
      ? ` (the target did not accept the credential of the slot "${slot}")`
      : "";
  return ` returned ${miss.status}; expected ${wanted}${why}`;
}

/** Whether a response is a refusal by the node's definition. */
export async function isRefusal(
  context: NodeContext,
  { refused = [] }: HttpConfig,
  response: OutboundResponse,
  { place, seen }: Subject,
): Promise<boolean> {
  for (const refusal of Array.isArray(refused) ? refused : [refused])
    if (await isAnswer(answerTools(context, { place: `${place}: refused`, seen }), refusal, response))
      return true;
  return false;
}

/** `key`: the key of the document that holds the condition, for messages. */
export function answerTools(
  { expressions, signal }: NodeContext,
  { place, seen }: Subject,
  key: "json" | "when" = "json",
): AnswerTools {
  const fail = (message: string): NodeFailure => new NodeFailure(`${message}.`);
  return {
    signal,
    place,
    fail,
    isTrue: async (condition, root) => {
      const [outcomes] = await expressions.evaluateBatch([condition], [{ ...root, variables: seen }]);
      const value = valueOf(outcomes?.[0], `${place}: ${key}`);
      if (value === undefined || value === null) return false;
      if (typeof value === "boolean") return value;
      throw fail(
        `${place}: \`${key}\` evaluates to ${kindOf(value)}; write a comparison, or \`$boolean(…)\``,
      );
    },
  };
}

/**
 * The body as text. Bytes that aren't text (a PDF, an image) cause a NodeFailure and are never mangled. `named`: the charset from
 * the document, which overrides the answer's.
 */
export function responseText(response: OutboundResponse, place: string, named?: string): string {
  if (named !== undefined) return decodeWhole(response.body, named, `${place}: the response`);
  const contentType = response.headers.get("content-type");
  const charset = charsetOf(contentType);
  if ((charset === null || charset === "utf-8" || charset === "utf8") && !isUtf8(response.body)) {
    throw new NodeFailure(
      `${place}: the response (${mediaType(contentType)}) is not UTF-8 text. Use \`save: file\` to keep it as a file.`,
    );
  }
  return response.text();
}

export function mediaType(contentType: string | undefined): string {
  // Completely or not at all: the redactor must be able to find complete values.
  const match = /^[\w.+-]{1,60}\/[\w.+-]{1,60}(?=$|[\s;])/.exec(contentType ?? "");
  return match?.[0] ?? (contentType === undefined ? "no content type" : "an invalid content type");
}
