import { readPage, type PageAnswers, type PageQuery } from "#answers/page-reader.ts";
import { isSelector } from "#answers/is-selector.ts";
import type { Scope } from "#domain/expression.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { splitUrlTemplate } from "#domain/url-template.ts";
import { must } from "#lib/assert.ts";
import { NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import { kindOf } from "#nodes/records/expression-value.ts";
import type { HttpConfig } from "./http-config.ts";
import { exchange, mismatch, responseText, type RequestContext } from "./http-exchange.ts";
import { withJson } from "./http-json.ts";
import { prepareRequest } from "./http-request.ts";

type Verify = NonNullable<HttpConfig["verify"]>;

const VERIFY_STATUSES = [200, 201, 202, 203, 204, 206, 207, 404];

/**
 * `verify`: true if the write is there. A 404 means that it is not. Throws NodeFailure if the look-up fails, or if its answer
 * can't be trusted, because a write that is not found is sent again.
 */
export async function isThere(
  context: NodeContext,
  verify: Verify,
  { scope, seen, place: written }: RequestContext,
): Promise<boolean> {
  const place = `${written}: verify`;
  const request = await prepareRequest(context, verify.request, scope);
  const status = verify.expect?.status === undefined ? VERIFY_STATUSES : [...verify.expect.status, 404];
  const reading: HttpConfig = { request: verify.request, effect: "read", expect: { status } };
  const response = await exchange(context, reading, request, { place, seen });
  if (response.status === 404 || response.status === 204) return false;
  const subject = { response, place, seen };
  await requirePlausible(context, verify, subject);
  const { when, text, css } = verify;
  return (
    (when === undefined || (await isTrueOf(context, when, scope, subject))) &&
    (text === undefined || (await hasText(context, text, scope, subject))) &&
    (css === undefined || (await hasElement(context, css, scope, subject)))
  );
}

async function isTrueOf(
  context: NodeContext,
  when: string,
  scope: Scope,
  { response, place, seen }: LookupResult,
): Promise<boolean> {
  const { token = "" } = scope.variables ?? {};
  const there = await withJson(
    context,
    response,
    place,
    async (root) => await context.expressions.evaluate(when, { ...root, variables: { ...seen, token } }),
  );
  if (typeof there === "boolean") return there;
  throw new NodeFailure(`${place}: \`when\` must evaluate to true or false.`);
}

/** A page other than the requested one does not show the write either. */
async function requirePlausible(
  context: NodeContext,
  { expect, request, when }: Verify,
  { response, place, seen }: LookupResult,
): Promise<void> {
  if (expect !== undefined) {
    const expected = { ...expect, status: [response.status] };
    const problem = await mismatch(context, { request, expect: expected }, response, { place, seen });
    if (problem !== null) throw new NodeFailure(`${place}${problem}.`);
  } else if (when === undefined && response.isRedirected)
    throw new NodeFailure(
      `${place}: the answer came after a redirect and may be a sign-in page; add to \`verify.expect\` a condition that the look-up's page always meets.`,
    );
}

interface LookupResult {
  readonly response: OutboundResponse;
  readonly place: string;
  /** The variables of expressions over the answer, in addition to the run's. */
  readonly seen: JsonObject;
}

async function hasText(
  context: NodeContext,
  template: string,
  scope: Scope,
  { response, place }: LookupResult,
): Promise<boolean> {
  const wanted = textOf(await context.expressions.render(template, scope), `${place}: \`text\``);
  // Every answer contains the empty string, so the write would count as done.
  if (wanted.trim() === "")
    throw new NodeFailure(`${place}: \`text\` evaluates to an empty string, which every answer contains.`);
  const body = responseText(response, place);
  if (!/html/i.test(response.headers.get("content-type") ?? "")) return body.includes(wanted);
  // The visible text, not the source: in the source, a search form contains the search term, and text may be escaped.
  const [text] = await readAnswer(context, body, { kind: "visible" }, place);
  return (text ?? "").includes(oneLine(wanted));
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

async function hasElement(
  context: NodeContext,
  template: string,
  scope: Scope,
  { response, place }: LookupResult,
): Promise<boolean> {
  const parts = must(splitUrlTemplate(template), "the parts of a checked selector");
  const expressions = Object.fromEntries(
    parts.flatMap((part, index) => (part.kind === "expression" ? [[String(index), part.template]] : [])),
  );
  const rendered = await context.expressions.render(expressions, scope);
  const values = isJsonObject(rendered) ? rendered : {};
  const css = parts
    .map((part, index) =>
      part.kind === "literal" ? part.text : escapeCss(textOf(values[String(index)], `${place}: \`css\``)),
    )
    .join("");
  if (!isSelector(css)) throw new NodeFailure(`${place}: with its values \`css\` is not a CSS selector.`);
  const body = responseText(response, place);
  const [found] = await readAnswer(context, body, { kind: "css", css, attr: null }, place);
  return found !== null && found !== undefined;
}

async function readAnswer(
  { signal }: NodeContext,
  body: string,
  query: PageQuery,
  place: string,
): Promise<PageAnswers> {
  const answers = await readPage(body, [query], signal);
  if (answers === null)
    throw new NodeFailure(`${place}: the page could not be read within the limits of time and memory.`);
  return answers;
}

function textOf(value: Json | undefined, place: string): string {
  if (value === undefined || value === null || typeof value === "object")
    throw new NodeFailure(`${place} evaluates to ${kindOf(value)}; it must be a string.`);
  return String(value);
}

/** Escapes a value for use in a name or in quotes, so that it can't end the selector or make it match everything. */
function escapeCss(value: string): string {
  return value.replaceAll(
    /^\d|[^A-Za-z0-9_\u0080-\uffff-]/g,
    (character) => `\\${character.charCodeAt(0).toString(16)} `,
  );
}
