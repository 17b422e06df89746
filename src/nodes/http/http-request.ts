import type { StreamedBody } from "#domain/http-exchange.ts";
import type { Scope } from "#domain/expression.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { must } from "#lib/assert.ts";
import { NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import { kindOf } from "#nodes/records/expression-value.ts";
import { fileBody, partsBody, partsTemplate, type Body } from "./http-body.ts";
import type { HttpRequest } from "./http-config.ts";
import { splitUrlTemplate, type UrlPart } from "#domain/url-template.ts";

export type Pairs = readonly (readonly [name: string, value: string])[];

/** A rendered request, before pagination adds to its query. */
export interface PreparedRequest {
  readonly method: string;
  readonly url: string;
  readonly query: Pairs;
  readonly headers: Pairs;
  readonly body: string | StreamedBody | undefined;
}

/** A header value: visible ASCII, Latin-1, spaces and tabs. No CR, LF or NUL, which could begin another header. */
const HEADER_VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;

/** Requests without expressions, by their documents, which are cached with their versions: each is prepared once. */
const fixed = new WeakMap<HttpRequest, PreparedRequest>();

/** Renders all templates of the request in one call. If a template has no value (or null), its key is left out. */
export async function prepareRequest(
  context: NodeContext,
  config: HttpRequest,
  scope?: Scope,
): Promise<PreparedRequest> {
  const known = fixed.get(config);
  if (known) return known;
  const { method, url, query, headers, json, form, text } = config;
  const parts = must(splitUrlTemplate(url), "the parts of a checked url");
  const urlValues = Object.fromEntries(
    parts.flatMap((part, index) => (part.kind === "expression" ? [[String(index), part.template]] : [])),
  );
  const template: JsonObject = {
    url: urlValues,
    ...present({ query, headers, json, form, text, multipart: partsTemplate(config) }),
  };
  const rendered = await context.expressions.render(template, scope);
  const values = isJsonObject(rendered) ? rendered : {};
  const record = scope?.root;
  const body =
    fileBody(context, config, record) ?? partsBody(context, config, values, record) ?? bodyOf(values);
  const sentHeaders = headerPairs(values["headers"], context.node.credential !== null);
  const hasType = sentHeaders.some(([name]) => name.toLowerCase() === "content-type");
  const prepared: PreparedRequest = {
    method: method ?? "GET",
    url: renderedUrl(parts, isJsonObject(values["url"]) ? values["url"] : {}),
    query: pairsOf(values["query"], "request.query"),
    headers: body === null || hasType ? sentHeaders : [...sentHeaders, ["content-type", body.type]],
    body: body?.content,
  };
  // A template without expressions is returned as it is. Files belong to their run.
  if (rendered === template && config.file === undefined && config.multipart === undefined)
    fixed.set(config, prepared);
  return prepared;
}

function present(keys: { readonly [key: string]: Json | undefined }): JsonObject {
  return Object.fromEntries(
    Object.entries(keys).filter((entry): entry is [string, Json] => entry[1] !== undefined),
  );
}

/**
 * Values inside a longer url are percent-encoded, so that none can end a path segment, begin a query or name another host; `.`
 * and `..` are rejected, because they would lead to another path. A url that is a single expression is used unchanged: relative,
 * or within the hosts.
 */
function renderedUrl(parts: readonly UrlPart[], values: JsonObject): string {
  const [whole] = parts;
  if (parts.length === 1 && whole?.kind === "expression") {
    const url = values["0"];
    if (typeof url !== "string" || url === "")
      throw new NodeFailure(
        `request.url evaluates to ${url === "" ? "an empty string" : kindOf(url)}; it must be a url.`,
      );
    return url;
  }
  const url = parts
    .map((part, index) => (part.kind === "literal" ? part.text : encoded(values[String(index)])))
    .join("");
  const [path = ""] = url.split(/[?#]/, 1);
  if (parts.length > 1 && path.split("/").some((segment) => segment === "." || segment === "..")) {
    throw new NodeFailure(
      "request.url: a value is the path segment `.` or `..`, which would lead to another path.",
    );
  }
  return url;
}

function encoded(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "object")
    throw new NodeFailure(
      `request.url: an expression evaluates to ${kindOf(value)}; it must be a string or a number.`,
    );
  return encodeURIComponent(String(value).toWellFormed());
}

/** Names and values of a query or a form; a list repeats its name. */
function pairsOf(value: Json | undefined, place: string): Pairs {
  if (value === undefined || value === null) return [];
  if (!isJsonObject(value))
    throw new NodeFailure(`${place} evaluates to ${kindOf(value)}; it must be an object.`);
  return Object.entries(value).flatMap(([name, item]) => {
    const items: readonly Json[] = Array.isArray(item) ? item : [item];
    return items.flatMap((single): Pairs => {
      if (single === null) return [];
      if (typeof single === "object")
        throw new NodeFailure(
          `${place}.${name} evaluates to ${kindOf(single)}; it must be a string, a number, true or false, or a list of these.`,
        );
      return [[name, String(single)]];
    });
  });
}

function headerPairs(value: Json | undefined, hasCredential: boolean): Pairs {
  const pairs = pairsOf(value, "request.headers");
  for (const [name, text] of pairs) {
    if (!HEADER_VALUE.test(text))
      throw new NodeFailure(
        `request.headers.${name}: the value contains a character that is not allowed in a header (a line break, or one outside Latin-1).`,
      );
    if (hasCredential && name.toLowerCase() === "authorization") {
      throw new NodeFailure(
        "request.headers.authorization: the node has a credential, whose strategy logs in.",
      );
    }
  }
  return pairs;
}

function bodyOf(values: JsonObject): Body | null {
  const { json, form, text } = values;
  if (json !== undefined) return { type: "application/json", content: JSON.stringify(json) };
  if (form !== undefined) {
    const pairs = pairsOf(form, "request.form").map(([name, value]): [string, string] => [name, value]);
    return { type: "application/x-www-form-urlencoded", content: new URLSearchParams(pairs).toString() };
  }
  if (text === undefined || text === null) return null;
  if (typeof text === "object")
    throw new NodeFailure(`request.text evaluates to ${kindOf(text)}; it must be a string.`);
  return { type: "text/plain;charset=utf-8", content: String(text) };
}
