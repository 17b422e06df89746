import type { CDPSession, Request, Route } from "playwright-core";

/** What a target answered to one request of a page. Neither headers nor a body of the request. */
export interface PageAnswer {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  /** Of those in `KEPT_HEADERS`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Records the answers that pages get, or gives them answers in place of the network. */
export interface PageTape {
  /** The page continues when it resolves. */
  record?(answer: PageAnswer): Promise<void>;
  /** null: there is none, and the request fails. With this function, nothing reaches the network. */
  answer?(method: string, url: string): PageAnswer | null;
}

/** What pages need of an answer. An allowlist, so that no header with a secret is kept by oversight. */
const KEPT_HEADERS = /^(content-type|content-disposition|location|access-control-.*)$/i;
/** Not needed by any step. */
const UNSEEN: readonly string[] = ["Image", "Media", "Font", "EventSource", "Ping", "Prefetch"];
/** A longer answer is not recorded. */
const BODY_BYTES_MAX = 8_388_608;

/** The part of CDP's `Fetch.requestPaused` that is needed here. */
export interface PausedRequest {
  readonly requestId: string;
  readonly request: { readonly method: string; readonly url: string };
  readonly resourceType: string;
  readonly responseStatusCode?: number | undefined;
  readonly responseHeaders?: readonly { readonly name: string; readonly value: string }[] | undefined;
}

type Patterns = { urlPattern: string; resourceType?: "Document"; requestStage?: "Response" }[];

/** What a session of a page pauses, besides documents. */
export function patternsOf(tape: PageTape | undefined): Patterns {
  if (tape?.answer !== undefined) return [{ urlPattern: "*" }];
  const documents = { urlPattern: "*", resourceType: "Document" } as const;
  return tape?.record === undefined
    ? [documents]
    : [documents, { urlPattern: "*", requestStage: "Response" }];
}

export const isAnswered = ({ responseStatusCode }: PausedRequest): boolean =>
  responseStatusCode !== undefined;

/** Records the answer of a paused request. Each hop of a redirect has one. */
export async function recordPaused(
  tape: PageTape,
  session: CDPSession,
  paused: PausedRequest,
): Promise<void> {
  const { requestId, request, resourceType, responseStatusCode: status = 0, responseHeaders = [] } = paused;
  if (UNSEEN.includes(resourceType) || !/^https?:/.test(request.url)) return;
  const length = responseHeaders.find(({ name }) => name.toLowerCase() === "content-length")?.value;
  if (Number(length ?? 0) > BODY_BYTES_MAX) return;
  const hasBody = ![204, 205, 301, 302, 303, 304, 307, 308].includes(status);
  const body = hasBody ? await readBody(session, requestId) : Buffer.alloc(0);
  if (body === null || body.length > BODY_BYTES_MAX) return;
  const headers = Object.fromEntries(
    responseHeaders.flatMap(({ name, value }) =>
      KEPT_HEADERS.test(name) ? [[name.toLowerCase(), value] as const] : [],
    ),
  );
  await tape.record?.({ method: request.method, url: withoutHash(request.url), status, headers, body });
}

/** Null: the browser has none. */
async function readBody(session: CDPSession, requestId: string): Promise<Buffer | null> {
  const found = await session.send("Fetch.getResponseBody", { requestId }).catch(() => null);
  return found && Buffer.from(found.body, found.base64Encoded ? "base64" : "utf8");
}

/** Answers a paused request from the tape. False: the tape has no answer. */
export async function answerPaused(
  tape: PageTape,
  session: CDPSession,
  { requestId, request: { method, url } }: PausedRequest,
): Promise<boolean> {
  const answer = tape.answer?.(method, withoutHash(url)) ?? null;
  if (answer === null) return false;
  await session.send("Fetch.fulfillRequest", {
    requestId,
    responseCode: answer.status,
    responseHeaders: Object.entries(answer.headers).map(([name, value]) => ({ name, value })),
    body: answer.body.toString("base64"),
  });
  return true;
}

/** The same for the first request of a window, which no session has seen yet. */
export async function answerRoute(tape: PageTape, route: Route, request: Request): Promise<boolean> {
  const answer = tape.answer?.(request.method(), withoutHash(request.url())) ?? null;
  if (answer === null) return false;
  await route.fulfill({ status: answer.status, headers: { ...answer.headers }, body: answer.body });
  return true;
}

const withoutHash = (url: string): string => url.replace(/#.*$/, "");
