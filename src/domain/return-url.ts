import { domainToUnicode } from "node:url";
import { limits } from "./limits.ts";

export type ReturnUrlCheck =
  | { readonly ok: true }
  /** A sentence that names the field and never quotes the URL. */
  | { readonly ok: false; readonly reason: string };

const refuse = (reason: string): ReturnUrlCheck => ({ ok: false, reason });

/** The fields with a URL to which an end user is sent. */
export type WayBackField = "return_url" | "cancel_url";

/**
 * Whether a `return_url` may be used, or a `cancel_url`, which follows the same rules: Spec, POST /credential-sessions; docs/decisions/0018 has the rules. `allowedOrigins` are
 * canonical (`canonicalOrigin`). Checked when the session is created and again at the redirect.
 *
 * The platform's parser decides; all the other rules guard against different parsers downstream (a proxy, the caller's framework),
 * which may see another host in the same text. So `http` is allowed exactly where its origin was allowed as `http`.
 */
export function checkReturnUrl(
  text: string,
  allowedOrigins: readonly string[],
  field: WayBackField = "return_url",
): ReturnUrlCheck {
  if (text.length > limits.returnUrlCharactersMax) {
    return refuse(`\`${field}\` must have at most ${limits.returnUrlCharactersMax} characters.`);
  }
  const read = readWebUrl(text, field);
  if ("reason" in read) return refuse(read.reason);
  if (!allowedOrigins.includes(read.url.origin)) {
    return refuse(`The origin (scheme, host and port) of \`${field}\` is not on this account's allowlist.`);
  }
  return { ok: true };
}

/** The canonical form of an origin, or undefined when the text is not exactly one web origin. */
export function canonicalOrigin(text: string): string | undefined {
  const read = readWebUrl(text);
  if ("reason" in read) return undefined;
  // The parser accepts `*` as an ordinary character, but the author means a wildcard, which is not supported.
  return /^https?:\/\/[^/?#*]+\/?$/i.test(text) ? read.url.origin : undefined;
}

function readWebUrl(
  text: string,
  field: WayBackField = "return_url",
): { readonly url: URL } | { readonly reason: string } {
  if (/[\u0000-\u0020\u007f\\]/.test(text) || !text.isWellFormed()) {
    return {
      reason: `\`${field}\` must not contain spaces, control characters, unpaired surrogates or backslashes.`,
    };
  }
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1];
  if (authority === undefined || !URL.canParse(text))
    return { reason: `\`${field}\` must be an absolute http or https URL.` };
  if (authority.includes("@")) return { reason: `\`${field}\` must not contain a user name or a password.` };
  const url = new URL(text);
  const host = authority.replace(/:\d*$/, "");
  if (host.endsWith(".") || url.hostname.endsWith(".")) {
    return { reason: `The host of \`${field}\` must not end with a dot.` };
  }
  if (!isPlainHost(host, url.hostname)) {
    return {
      reason: `The host of \`${field}\` must be written as in a browser's address bar.`,
    };
  }
  return { url };
}

/**
 * Whether the host as written is the host as parsed, which full-width letters, percent-encoding, soft hyphens, ideographic dots
 * and octal addresses are not. Two spellings are allowed: IPv6 in brackets, and an internationalised name that is unchanged by a
 * round trip.
 */
function isPlainHost(written: string, parsed: string): boolean {
  if (written.toLowerCase() === parsed || written.startsWith("[")) return true;
  return parsed.includes("xn--") && domainToUnicode(parsed) === written.normalize("NFC").toLowerCase();
}

/**
 * The redirect of the end user: the parsed URL with `session_id` as the last parameter of its query. An existing `session_id` is
 * removed (it could be another person's session: docs/decisions/0018); every other byte of the query and the fragment is
 * preserved. Spec, Credential session, `return_url`. The URL must have passed `checkReturnUrl`.
 */
export function appendSessionId(returnUrl: string, sessionId: string): string {
  const [beforeFragment, fragment] = cut(new URL(returnUrl).href, "#");
  const [base, query] = cut(beforeFragment, "?");
  const kept = query
    .slice(1)
    .split("&")
    .filter((parameter) => !isSessionId(parameter))
    .join("&");
  return `${base}?${kept === "" ? "" : `${kept}&`}session_id=${encodeURIComponent(sessionId)}${fragment}`;
}

/** The text before the first `mark`, and the rest with it. */
function cut(text: string, mark: string): [before: string, rest: string] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at)];
}

/** Names are compared as receivers decode them: `session%5Fid` is one too. */
function isSessionId(parameter: string): boolean {
  // Includes its separator: otherwise a `?` at its beginning would be dropped.
  return new URLSearchParams(`&${parameter}`).has("session_id");
}
