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

/** A request as it is sent, before paging adds to its query. */
export interface PreparedRequest {
  readonly method: string;
  readonly url: string;
  readonly query: Pairs;
  readonly headers: Pairs;
  readonly body: string | StreamedBody | undefined;
}

/** A header value: visible ASCII, Latin-1, spaces and tabs. No CR, LF or NUL, which would begin another header. */
const HEADER_VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;

/** Renders the request's templates, all in one hop. A template that gives nothing (or null) leaves its key out. */
export async function prepareRequest(
  context: NodeContext,
  config: HttpRequest,
  scope?: Scope,
): Promise<PreparedRequest> {
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
  return {
    method: method ?? "GET",
    url: renderedUrl(parts, isJsonObject(values["url"]) ? values["url"] : {}),
    query: pairsOf(values["query"], "request.query"),
    headers: body === null || hasType ? sentHeaders : [...sentHeaders, ["content-type", body.type]],
    body: body?.content,
  };
}

function present(keys: { readonly [key: string]: Json | undefined }): JsonObject {
  return Object.fromEntries(
    Object.entries(keys).filter((entry): entry is [string, Json] => entry[1] !== undefined),
  );
}

/**
 * The values are percent-encoded where they stand in a longer url, so that none can end a path segment, begin a query or name
 * another host; `.` and `..` would still climb. A url that is one expression is taken as it is: relative, or within the hosts.
 */
function renderedUrl(parts: readonly UrlPart[], values: JsonObject): string {
  const [whole] = parts;
  if (parts.length === 1 && whole?.kind === "expression") {
    const url = values["0"];
    if (typeof url !== "string" || url === "")
      throw new NodeFailure(
        `request.url gives ${url === "" ? "an empty text" : kindOf(url)}; it must give a url.`,
      );
    return url;
  }
  const url = parts
    .map((part, index) => (part.kind === "literal" ? part.text : encoded(values[String(index)])))
    .join("");
  const [path = ""] = url.split(/[?#]/, 1);
  if (parts.length > 1 && path.split("/").some((segment) => segment === "." || segment === "..")) {
    throw new NodeFailure(
      "request.url: a value gives the path segment `.` or `..`, which would lead to another path.",
    );
  }
  return url;
}

function encoded(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "object")
    throw new NodeFailure(
      `request.url: an expression gives ${kindOf(value)}; it must give a text or a number.`,
    );
  return encodeURIComponent(String(value).toWellFormed());
}

/** Names and values of a query or a form; a list repeats its name. */
function pairsOf(value: Json | undefined, place: string): Pairs {
  if (value === undefined || value === null) return [];
  if (!isJsonObject(value)) throw new NodeFailure(`${place} gives ${kindOf(value)}; it must give an object.`);
  return Object.entries(value).flatMap(([name, item]) => {
    const items: readonly Json[] = Array.isArray(item) ? item : [item];
    return items.flatMap((single): Pairs => {
      if (single === null) return [];
      if (typeof single === "object")
        throw new NodeFailure(
          `${place}.${name} gives ${kindOf(single)}; it must give a text, a number, true or false, or a list of them.`,
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
        `request.headers.${name}: the value holds a character that no header may have (a line break, or one outside Latin-1).`,
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
    throw new NodeFailure(`request.text gives ${kindOf(text)}; it must give a text.`);
  return { type: "text/plain;charset=utf-8", content: String(text) };
}
