import { shorten } from "#domain/config-problem.ts";
import type { OutboundRequest } from "#domain/http-exchange.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { LoginFailure, type LoginContext } from "#strategies/define-login.ts";
import type { RequestConfig, StepConfig } from "./http-schema.ts";
import { renderAt, type Variables } from "#strategies/login-expressions.ts";
import { headerValue, textPairs } from "#strategies/login-headers.ts";
import { splitUrlTemplate, type UrlPart } from "#domain/url-template.ts";

/** The step as written in the document, for example `POST /login`; never a rendered value. */
export function describeStep({ request, submit }: StepConfig): string {
  if (submit !== undefined) return `submit ${shorten(submit.form, 100)}`;
  return request === undefined ? "nothing" : describeRequest(request);
}

export function describeRequest(request: RequestConfig): string {
  return `${request.method ?? "GET"} ${shorten(request.url, 100)}`;
}

/** The request with its templates rendered, all at once, because rendering a one-time code uses it up. */
export async function buildRequest(
  context: LoginContext,
  request: RequestConfig,
  variables: Variables,
  follow: boolean,
  place: string,
): Promise<OutboundRequest> {
  const { method = "GET", url, ...rest } = request;
  const urlParts = must(splitUrlTemplate(url), "the parts of a checked url");
  const urlValues = Object.fromEntries(
    urlParts.flatMap((part, index) => (part.kind === "expression" ? [[String(index), part.template]] : [])),
  );
  const template = { ...rest, url: urlValues } as JsonObject;
  const rendered = await renderAt(context.expressions, `${place}: request`, template, { variables });
  const parts = isJsonObject(rendered) ? rendered : {};
  const written = textPairs(parts["headers"], `${place}: request.headers`);
  const body = encodeBody(parts, place);
  const hasType = written.some(([name]) => name.toLowerCase() === "content-type");
  const headers = body === null || hasType ? written : [...written, ["content-type", body.type] as const];
  return {
    method,
    url: renderedUrl(urlParts, isJsonObject(parts["url"]) ? parts["url"] : {}, place),
    query: textPairs(parts["query"], `${place}: request.query`),
    headers: headers.map(([name, value]) => [name, headerValue(value, name, place)] as const),
    body: body?.text,
    // docs/decisions/0030: a login follows no redirect unless a step says so.
    redirectsMax: follow ? limits.redirectsMax : 0,
  };
}

/**
 * Values inside a longer url are percent-encoded, so that none can end a path segment, begin a query or name another host; `.`
 * and `..` are rejected, because they would lead to another path. A url that is a single expression (a form's action) is used
 * unchanged: relative, or within the hosts. docs/decisions/0015.
 */
function renderedUrl(parts: readonly UrlPart[], values: JsonObject, place: string): string {
  if (parts.length === 1 && parts[0]?.kind === "expression") {
    const url = values["0"];
    if (typeof url !== "string" || url === "")
      throw new LoginFailure(`${place}: request.url must evaluate to a string that is not empty`);
    return url;
  }
  const url = parts
    .map((part, index) =>
      part.kind === "literal" ? part.text : encodeUrlValue(values[String(index)], place),
    )
    .join("");
  const [path = ""] = url.split(/[?#]/, 1);
  if (parts.length > 1 && path.split("/").some((segment) => segment === "." || segment === "..")) {
    throw new LoginFailure(
      `${place}: a value in request.url is the path segment \`.\` or \`..\`, which would lead to another path`,
    );
  }
  return url;
}

function encodeUrlValue(value: Json | undefined, place: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "object")
    throw new LoginFailure(
      `${place}: a value in request.url is an object or a list; it must be a string or a number`,
    );
  return encodeURIComponent(String(value).toWellFormed());
}

function encodeBody(
  parts: JsonObject,
  place: string,
): { readonly type: string; readonly text: string } | null {
  const json: Json | undefined = parts["json"];
  if (json !== undefined) return { type: "application/json", text: JSON.stringify(json) };
  if (parts["form"] !== undefined) {
    const pairs = textPairs(parts["form"], `${place}: request.form`);
    const form = new URLSearchParams();
    for (const [name, value] of pairs) form.append(name, value);
    return { type: "application/x-www-form-urlencoded", text: form.toString() };
  }
  const text: Json | undefined = parts["text"];
  if (text === undefined || text === null) return null;
  return { type: "text/plain;charset=utf-8", text: typeof text === "string" ? text : JSON.stringify(text) };
}
