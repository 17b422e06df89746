import { LOOPBACK } from "#domain/account-secret.ts";
import { isJsonObject } from "#domain/json.ts";
import { splitUrlTemplate, urlTemplateProblem } from "#domain/url-template.ts";
import { must } from "#lib/assert.ts";
import type { BoundExpressions } from "#domain/expression.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { renderAt } from "#strategies/login-expressions.ts";

/** The problem with an endpoint's URL as written in a document; null: none. */
export function endpointProblem(url: string): string | null {
  const problem = urlTemplateProblem(url);
  if (problem !== null) return problem;
  const origin = writtenOrigin(url);
  if (origin === null) return "must be an absolute URL that begins with https://";
  const { protocol, hostname } = new URL(origin);
  if (protocol === "http:" && !LOOPBACK.test(hostname))
    return "must begin with https://, because tokens are sent there (plain http is only allowed for loopback hosts)";
  return url.includes("#") ? "must not have a fragment (`#`)" : null;
}

/** The literal origin of a URL in a document. Null: the URL is relative, or is entirely a template. */
export function writtenOrigin(url: string): string | null {
  const [host] = /^https?:\/\/[^/?#{}]+/i.exec(url) ?? [];
  return host !== undefined && URL.canParse(host) ? new URL(host).origin : null;
}

/** Renders an endpoint's URL. Each value is percent-encoded. Throws LoginFailure. */
export async function renderEndpoint(
  expressions: BoundExpressions,
  url: string,
  place: string,
): Promise<string> {
  const parts = must(splitUrlTemplate(url), "the parts of a checked url");
  const template = Object.fromEntries(
    parts.flatMap((part, index) => (part.kind === "expression" ? [[String(index), part.template]] : [])),
  );
  const rendered = await renderAt(expressions, place, template);
  const values = isJsonObject(rendered) ? rendered : {};
  const whole = parts
    .map((part, index) => (part.kind === "literal" ? part.text : encode(values[String(index)], place)))
    .join("");
  const [path = ""] = whole.split(/[?#]/, 1);
  // A value `..` would lead to another path on the same host.
  if (parts.length > 1 && path.split("/").some((segment) => segment === "." || segment === ".."))
    throw new LoginFailure(`${place}: a value is the path segment \`.\` or \`..\``);
  return whole;
}

function encode(value: unknown, place: string): string {
  if (typeof value !== "string" && typeof value !== "number")
    throw new LoginFailure(`${place}: a value is empty, or neither text nor number`);
  if (value === "") throw new LoginFailure(`${place}: a value is empty`);
  return encodeURIComponent(String(value).toWellFormed());
}
