import { OutboundError, type OutboundRequest, type OutboundResponse } from "#domain/http-exchange.ts";
import type { Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { NodeFailure, type KnownWrite, type NodeContext } from "#nodes/define-node.ts";
import { settleKnown, settleWrite, type Written } from "#nodes/settle-write.ts";
import { retryAfterMs } from "#lib/retry-delay.ts";
import type { HttpConfig } from "./http-config.ts";
import {
  delayMs,
  isRefusal,
  mismatch,
  NO_RETRIES,
  responseText,
  triesText,
  type Subject,
  waitForSlot,
} from "./http-exchange.ts";
import type { PreparedRequest } from "./http-request.ts";

/** One write of a node. */
export interface Write {
  readonly ordinal: number;
  /** Its request, not sent yet. For a form, the page is requested again. */
  prepare(): Promise<PreparedRequest>;
  readonly subject: Subject;
  /** The output from the answer, as JSON, which is stored and returned again after a crash. */
  read(response: OutboundResponse): Promise<Json>;
  /** The output for a write without an answer, which was looked up or decided by the operator. */
  readonly whenFound: Json;
  /** Looks up whether it happened; null: the node has no lookup. */
  readonly lookUp: (() => Promise<boolean>) | null;
}

/**
 * Executes one write, unless it is already done: its intent is committed before it is sent. An uncertain write is looked up;
 * if that is impossible, the operator decides or the node fails, depending on `on_unknown`. Throws NodeFailure.
 */
export async function executeWrite(
  context: NodeContext,
  config: HttpConfig,
  write: Write,
  known: KnownWrite | undefined,
): Promise<Written> {
  const uncertain = { ...write, place: write.subject.place, onUnknown: config.on_unknown };
  // A form's request would be different by now.
  const again = async (): Promise<PreparedRequest | null> =>
    write.lookUp === null && config.submit === undefined ? await write.prepare() : null;
  const before = await settleKnown(context, uncertain, known, {
    why: "the worker was lost while the request was in progress",
    request: again,
  });
  if (before !== "not_there") return before;
  const attempts = Math.max(1, context.node.retry.attempts);
  for (let attempt = 1; ; attempt += 1) {
    context.signal.throwIfAborted();
    const request = await write.prepare();
    const sent = await sendOnce(context, config, write, request);
    if (sent.kind === "done") return { gave: await finish(context, write, sent.response) };
    if (sent.kind === "doubt" || sent.kind === "unlikely") {
      const settled = await settleWrite(context, uncertain, { why: sent.why, request });
      if (settled !== "not_there") return settled;
    }
    if (sent.kind === "refused" || sent.kind === "unlikely") {
      // A write that was looked up has already been ruled out.
      if (sent.kind === "refused") await context.writes.refuse(write.ordinal);
      throw new NodeFailure(`${write.subject.place}${sent.why}.`, { answer: sent.answer });
    }
    const isLast = attempt >= attempts;
    if (isLast || !(await context.takeRetry())) {
      const tries = triesText(attempt, isLast ? undefined : NO_RETRIES);
      if (sent.kind === "doubt")
        throw new NodeFailure(`${write.subject.place}: ${sent.why}; a look-up did not find it${tries}.`);
      await context.writes.refuse(write.ordinal);
      throw new NodeFailure(`${write.subject.place}${sent.why}${tries}.`);
    }
    const waitMs = delayMs(context, attempt, sent.kind === "later" ? sent.askedMs : null);
    context.log("retry", { attempt, waitMs });
    await context.sleep(waitMs);
  }
}

type Sent =
  | { readonly kind: "done"; readonly response: OutboundResponse }
  /** Certainly not processed; a retry may succeed. */
  | { readonly kind: "later"; readonly why: string; readonly askedMs: number | null }
  | { readonly kind: "doubt"; readonly why: string }
  /** The target refused it; `unlikely`: it probably refused, and the node can look up whether the write happened. */
  | { readonly kind: "refused" | "unlikely"; readonly why: string; readonly answer: OutboundResponse };

/** Commits the intent, sends the request and interprets its answer. Throws NodeFailure if the request was refused by our own rules. */
async function sendOnce(
  context: NodeContext,
  config: HttpConfig,
  write: Write,
  request: PreparedRequest,
): Promise<Sent> {
  const outbound: OutboundRequest = {
    ...request,
    maxBytes: config.max_bytes ?? limits.responseBytesMax,
    redirectsMax: config.follow === false ? 0 : limits.redirectsMax,
    timeoutMs: context.node.timeoutMs ?? limits.requestTimeoutMs,
  };
  let response: OutboundResponse;
  try {
    await waitForSlot(context, config, request.url);
    await context.writes.begin(write.ordinal);
    await stopUnsent(context, write);
    response = await context.writes.send(outbound, write.ordinal);
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    if (error.failure === "unreachable") return { kind: "later", why: `: ${error.message}`, askedMs: null };
    if (error.failure === "refused") {
      await context.writes.refuse(write.ordinal);
      throw new NodeFailure(`${write.subject.place}: ${error.message}`, { cause: error });
    }
    return { kind: "doubt", why: error.message };
  }
  return await judge(context, config, write, response).catch(async (error: unknown) => {
    // The answer can't be checked against the document: the outcome is unknown.
    if (error instanceof NodeFailure) return { kind: "doubt", why: error.message };
    throw error;
  });
}

/** The meaning of an answer for the write. */
async function judge(
  context: NodeContext,
  config: HttpConfig,
  { subject }: Write,
  response: OutboundResponse,
): Promise<Sent> {
  if (await isRefusal(context, config, response, subject))
    return { kind: "refused", why: `: the target refused it (${response.status})`, answer: response };
  const why = await mismatch(context, config, response, subject);
  if (why === null) return { kind: "done", response };
  if (isTemporaryRefusal(response)) return { kind: "later", why, askedMs: retryAfterMs(response.headers) };
  if (response.status >= 500) return { kind: "doubt", why: `the target returned ${response.status}` };
  if (context.node.edition >= 2 && !isOwnRefusal(response))
    return { kind: "doubt", why: why.replace(/^ returned/, "the target returned").replace(/^: /, "") };
  const kind = config.verify === undefined || context.node.edition < 2 ? "refused" : "unlikely";
  return { kind, why, answer: response };
}

/**
 * By default, only a 4xx to the request itself is a refusal, except 408 (RFC 9110, 15.5.9): the target may have stopped reading
 * halfway.
 */
function isOwnRefusal({ status, isRedirected }: OutboundResponse): boolean {
  return !isRedirected && status >= 400 && status <= 499 && status !== 408;
}

/** The run was stopped while the intent was committed: nothing was sent, so the write is not uncertain. */
async function stopUnsent(context: NodeContext, write: Write): Promise<void> {
  if (!context.signal.aborted) return;
  await context.writes.ruleOut(write.ordinal);
  context.signal.throwIfAborted();
}

/** RFC 6585, 4 and RFC 9110, 15.6.4: the target says that it did not process the request, and when to retry. */
function isTemporaryRefusal({ status, headers, isRedirected }: OutboundResponse): boolean {
  // After a redirect only the next page is unavailable, and the write may be done.
  return !isRedirected && (status === 429 || (status === 503 && headers.has("retry-after")));
}

/** The write has happened: whatever its answer is, it is never sent again. */
async function finish(context: NodeContext, write: Write, response: OutboundResponse): Promise<Json> {
  let gave: Json;
  try {
    gave = await write.read(response);
  } catch (error) {
    await context.writes.finish(write.ordinal, null);
    throw error;
  }
  await context.writes.finish(write.ordinal, gave);
  return gave;
}

/** The text of an answer as the output of a node without `records`. */
export function textOutcome(response: OutboundResponse, place: string): Json {
  return { text: responseText(response, place) };
}
