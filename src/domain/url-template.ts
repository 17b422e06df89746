/** A part of a URL template, split at its `{{ … }}`. */
export type UrlPart =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "expression"; readonly template: string };

/** The parts in order, or null for a `{{` that is never closed. Strings and braces inside an expression are skipped. */
export function splitUrlTemplate(url: string): readonly UrlPart[] | null {
  const parts: UrlPart[] = [];
  let at = 0;
  for (;;) {
    const open = url.indexOf("{{", at);
    if (open === -1) break;
    const end = expressionEnd(url, open + 2);
    if (end === null) return null;
    if (open > at) parts.push({ kind: "literal", text: url.slice(at, open) });
    parts.push({ kind: "expression", template: url.slice(open, end) });
    at = end;
  }
  if (at < url.length) parts.push({ kind: "literal", text: url.slice(at) });
  return parts;
}

/** The position after the `}}` that closes the expression. */
function expressionEnd(url: string, start: number): number | null {
  let depth = 0;
  let quote: string | null = null;
  for (let at = start; at < url.length; at += 1) {
    const character = url[at];
    if (quote !== null) {
      if (character === "\\" && quote !== "`") at += 1;
      else if (character === quote) quote = null;
    } else if (character === '"' || character === "'" || character === "`") quote = character;
    else if (character === "{") depth += 1;
    else if (character === "}" && depth > 0) depth -= 1;
    else if (character === "}" && url[at + 1] === "}") return at + 2;
  }
  return null;
}

/**
 * The problem with a URL template, or null. docs/decisions/0015: the host part must not contain an expression. A URL that is a
 * single expression may have any value: the egress gate restricts it to the allowed hosts.
 */
export function urlTemplateProblem(url: string): string | null {
  const parts = splitUrlTemplate(url);
  if (parts === null) return "a `{{` in the URL has no closing `}}`";
  const [first] = parts;
  if (parts.some((part) => part.kind === "literal" && /[\s\\\u0000-\u001f]/.test(part.text)))
    return "a URL must not contain spaces, line breaks or backslashes";
  if (first?.kind === "expression") return parts.length === 1 ? null : HOST_PROBLEM;
  const literal = first?.text ?? "";
  if (/^[/\\]{2}/.test(literal)) return "a URL must be relative (`/path`) or begin with https://";
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(literal)?.[1]?.toLowerCase();
  if (scheme === undefined) return parts.length === 1 || /[/?#]/.test(literal) ? null : HOST_PROBLEM;
  if (scheme !== "https" && scheme !== "http")
    return `a URL must be relative (\`/path\`) or begin with https://, not with ${scheme}:`;
  const host = /^https?:\/\/([^/?#]+)(.?)/i.exec(literal);
  if (host === null || (parts.length > 1 && host[2] === "")) return HOST_PROBLEM;
  return host[1]?.includes("@") === true
    ? "a URL must not contain a user name or password: logins are strategies"
    : null;
}

const HOST_PROBLEM =
  "the host of a URL must not contain an expression: begin it with `/` or with a complete https://host/";
