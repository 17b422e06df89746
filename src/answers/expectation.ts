import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { shorten } from "#domain/config-problem.ts";
import { EXPRESSION, NotJson, type ExpressionScopeKind, type Scope } from "#domain/expression.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import { reserveJsonMemory } from "#domain/json-room.ts";
import { readRoot } from "#domain/read-json.ts";
import { readPage } from "./page-reader.ts";

/** The conditions for an answer: the keys of `expect` of logins and nodes, and of a node's `refused`. */
export const answerKeys = (scope: ExpressionScopeKind) => ({
  status: Type.Optional(
    Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), {
      minItems: 1,
      description: "Allowed status codes.",
    }),
  ),
  text: Type.Optional(Type.String({ minLength: 1, description: "The body must contain this." })),
  not_text: Type.Optional(Type.String({ minLength: 1, description: "The body must not contain this." })),
  json: Type.Optional(
    Type.String({ minLength: 1, [EXPRESSION]: scope, description: "Must be true for the JSON body." }),
  ),
  css: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1_000,
      description: "The HTML body must contain an element that matches this selector.",
    }),
  ),
  url: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        "The URL of the response must contain this; for a redirect that isn't followed, its location.",
    }),
  ),
});

const shape = Type.Object(answerKeys("response"));
export type Expectation = Static<typeof shape>;

/** The functions for examining an answer. */
export interface AnswerTools {
  readonly signal: AbortSignal;
  /** Whether a condition is true for the answer's JSON. */
  readonly isTrue: (condition: string, root: Pick<Scope, "root" | "rootText">) => Promise<boolean>;
  /** The beginning of messages. */
  readonly place: string;
  /** Creates the error to throw when the answer can't be read. */
  readonly fail: (message: string) => Error;
}

/** How an answer differs from the expectation. */
export type Miss =
  | { readonly kind: "status"; readonly status: number; readonly listed: readonly number[] | null }
  /** A phrase that quotes the document and never the answer. */
  | { readonly kind: "content"; readonly phrase: string };

/** How the answer differs from the expectation; null: it doesn't. Without `status`, 200 to 299 are accepted. */
export async function findMiss(
  tools: AnswerTools,
  expect: Expectation | undefined,
  response: OutboundResponse,
): Promise<Miss | null> {
  const { status } = response;
  const listed = expect?.status ?? null;
  if (listed === null ? status < 200 || status > 299 : !listed.includes(status))
    return { kind: "status", status, listed };
  const phrase = expect === undefined ? null : await missedContent(tools, expect, response);
  return phrase === null ? null : { kind: "content", phrase };
}

/** Whether the answer meets all conditions. Without `status`, any status is accepted. */
export async function isAnswer(
  tools: AnswerTools,
  named: Expectation,
  response: OutboundResponse,
): Promise<boolean> {
  if (named.status !== undefined && !named.status.includes(response.status)) return false;
  return (await missedContent(tools, named, response)) === null;
}

async function missedContent(
  tools: AnswerTools,
  { url, text, not_text: notText, css, json }: Expectation,
  response: OutboundResponse,
): Promise<string | null> {
  if (url !== undefined && !addressOf(response).includes(url))
    return `expected an address with \`${shorten(url)}\``;
  if (text !== undefined && !response.text().includes(text))
    return `expected text \`${shorten(text)}\` is not in the response`;
  if (notText !== undefined && response.text().includes(notText))
    return `the response contains \`${shorten(notText)}\``;
  if (css !== undefined && !(await hasElement(tools, css, response)))
    return `expected element \`${shorten(css, 100)}\` is not in the response`;
  return json === undefined ? null : await missedJson(tools, json, response);
}

/** The response's URL, or the location of its redirect. It is not shown, because a target may put a token into it. */
function addressOf({ status, headers, url }: OutboundResponse): string {
  const location = status >= 300 && status <= 399 ? headers.get("location") : undefined;
  return location !== undefined && URL.canParse(location, url) ? new URL(location, url).href : url;
}

async function hasElement(
  { signal, place, fail }: AnswerTools,
  css: string,
  response: OutboundResponse,
): Promise<boolean> {
  const answers = await readPage(response.text(), [{ kind: "css", css, attr: null }], signal);
  if (answers === null)
    throw fail(`${place}: the response could not be read within the limits of time and memory`);
  return answers[0] !== null;
}

async function missedJson(
  tools: AnswerTools,
  condition: string,
  response: OutboundResponse,
): Promise<string | null> {
  const isMet = await withJsonBody(tools, response, async (root) =>
    root === undefined ? null : await tools.isTrue(condition, root),
  );
  if (isMet === null) return "expected a JSON response";
  return isMet ? null : `expected \`${shorten(condition, 200)}\` to be true`;
}

/**
 * Processes the body as JSON once there is room for it in the memory budget. Undefined if the body is not JSON, or is nested so
 * deeply that processing it would overflow the stack (docs/decisions/0028). Throws for JSON with too many values.
 */
export async function withJsonBody<T>(
  { signal, place, fail }: Pick<AnswerTools, "signal" | "place" | "fail">,
  response: OutboundResponse,
  work: (root: Pick<Scope, "root" | "rootText"> | undefined) => Promise<T>,
): Promise<T> {
  const release = await reserveJsonMemory(response.body, signal);
  try {
    const read = readRoot(response.text());
    if (!read.ok && read.isTooMuch) throw fail(`${place}: the response ${read.problem}`);
    return await work(read.ok ? read.root : undefined);
  } catch (error) {
    if (error instanceof NotJson) return await work(undefined);
    throw error;
  } finally {
    release();
  }
}
